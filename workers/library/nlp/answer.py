"""`local/nlp/answer`: questions answered by a sentence of a local knowledge base, or `unsure`."""

from __future__ import annotations

from typing import Annotated, Any, Final, NamedTuple

import numpy as np
from msgspec import Meta

from workers.backends import Backend
from workers.backends.function import backends_of, capability
from workers.errors import BadInput
from workers.library.nlp.given import text_of
from workers.library.nlp.knowledge import Hit, Index, KnowledgeBase
from workers.library.nlp.search import terms_of
from workers.library.nlp.sentences import sentences_of

MOST_CHARACTERS: Final = 2_000
THRESHOLD: Final = 0.22
UNSURE: Final = "unsure"
_SHOWN: Final = 1_500
Question = Annotated[str, Meta(max_length=MOST_CHARACTERS)]

QUALITY: Final = (
    "44 questions on Edgeway's docs: the right page first for 91%, among three for 98%; the sentence itself"
    " answers about half; 12 of 12 questions on other subjects are unsure. Not calibrated"
)


class _Sentence(NamedTuple):
    start: int
    end: int
    score: float


def answer_backend(
    knowledge: KnowledgeBase, name: str = "local/nlp/answer", *, threshold: float = THRESHOLD
) -> Backend:
    """A capability that answers from `knowledge`, which is read when the worker loads."""

    @capability(
        name,
        model="bm25-and-vectors",
        licence="Apache-2.0; vectors of wordllama (MIT); the documents are the operator's",
        source="BM25 of this project, sentence vectors of wordllama 0.4",
        quality=QUALITY,
        load=knowledge.load,
    )
    def answer(
        question: Question = "",
        query: Question = "",
        text: Question = "",
        sources: Annotated[int, Meta(ge=1, le=10)] = 3,
        least: Annotated[float, Meta(ge=0, le=1)] = threshold,
    ) -> Any:
        """Answers a question by a sentence of the knowledge base, with its source, or says `unsure`."""
        return answered(knowledge.index, text_of(question or text, query, MOST_CHARACTERS), sources, least)

    (backend,) = backends_of(answer)
    return backend


def answered(index: Index, question: str, sources: int = 3, least: float = THRESHOLD) -> Any:
    """(output, confidence): 0 where it is unsure, so that a plan may ask elsewhere; else None, for the scores
    are not calibrated: how far they can be believed depends on the documents.

    Raises:
        BadInput: a question without words.
    """
    if not terms_of(question) and index.vectors is None:
        raise BadInput("the question has no words to look for")
    hits = index.search(question, sources)
    best = max(hits[:2], key=lambda hit: _sentence(index, hit, question).score + hit.score)
    sentence = _sentence(index, best, question)
    sure = best.score >= least
    document = index.documents[best.passage.document]
    said: dict[str, Any] = {
        "answer": document.text[sentence.start : sentence.end] if sure else UNSURE,
        "unsure": not sure,
        "score": round(best.score, 4),
        "sources": [_source(index, hit) for hit in (best, *(hit for hit in hits if hit is not best))],
    }
    if sure:
        said |= {"source": document.id, "start": sentence.start, "end": sentence.end}
    return said, None if sure else 0.0


def _source(index: Index, hit: Hit) -> dict[str, Any]:
    passage = hit.passage
    return {
        "source": index.documents[passage.document].id,
        "title": passage.title,
        "start": passage.start,
        "end": passage.end,
        "passage": index.text(passage)[:_SHOWN],
        "score": round(hit.score, 4),
    }


def _sentence(index: Index, hit: Hit, question: str) -> _Sentence:
    """The sentence of a passage with most of the question's weighty words, and the likest to it."""
    passage = hit.passage
    text = index.text(passage)
    spans = sentences_of(text)
    wanted = set(terms_of(question))
    whole = sum(map(index.postings.weight, wanted)) or 1.0
    marks = np.array(
        [sum(map(index.postings.weight, wanted & set(terms_of(text[a:b])))) / whole for a, b in spans]
    )
    if index.vectors is not None:
        rows = index.vectors.of([question, *(text[a:b] for a, b in spans)])
        marks = 0.6 * marks + 0.4 * (rows[1:] @ rows[0])
    best = int(marks.argmax())
    start, end = spans[best]
    return _Sentence(passage.start + start, passage.start + end, float(marks[best]))
