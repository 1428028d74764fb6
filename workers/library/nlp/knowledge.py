"""A knowledge base: documents, passages and the index over them, kept on disk by a digest of the text."""

from __future__ import annotations

import logging
import os
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from workers.errors import LoadError
from workers.library.nlp.documents import Document, Passage, digest_of, passages_of, read_documents
from workers.library.nlp.search import Postings, packed, postings_of, terms_of, unpacked
from workers.library.nlp.vectors import DIMENSIONS, NAME, Vectors, missing, read_vectors

log = logging.getLogger(__name__)
Floats = NDArray[np.float32]
_FORM: Final = 2
_WORDS: Final = 0.55
"""Share of BM25 in a passage's score where there are vectors; the rest is their cosine."""


class Hit(NamedTuple):
    """`score` in [0, 1], with `words` the BM25 part of it."""

    passage: Passage
    score: float
    words: float


class Index(NamedTuple):
    """`table` [passages, 256] of length 1, None without the package wordllama."""

    documents: list[Document]
    passages: list[Passage]
    postings: Postings
    table: Floats | None
    vectors: Vectors | None

    def search(self, question: str, most: int = 3) -> list[Hit]:
        """The best passages, the best first; of equal ones the earlier."""
        words = self.postings.scores(list(dict.fromkeys(terms_of(question))))
        scores = words
        if self.table is not None and self.vectors is not None:
            likeness = self.table @ self.vectors.of([question])[0]
            scores = np.float32(_WORDS) * words + np.float32(1 - _WORDS) * np.clip(likeness, 0, 1)
        best = np.argsort(-scores, kind="stable")[:most]
        return [Hit(self.passages[k], float(scores[k]), float(words[k])) for k in best]

    def text(self, passage: Passage) -> str:
        return self.documents[passage.document].text[passage.start : passage.end]


class KnowledgeBase:
    """The documents at `path` (a folder or a .jsonl file). The index is kept in `cache`, by default
    `$XDG_CACHE_HOME/edgeway/knowledge`; where the documents are the same, the next start reads it.
    """

    def __init__(self, path: str | Path, cache: str | Path | None = None) -> None:
        self.path = Path(path).expanduser()
        self._cache = Path(cache).expanduser() if cache is not None else _cache_folder()
        self._index: Index | None = None

    def load(self) -> Index:
        """Reads the documents anew and makes ready to search.

        Raises:
            LoadError: documents that cannot be read.
        """
        documents = read_documents(self.path)
        vectors = None if missing() else read_vectors()
        file = self._cache / f"{digest_of(documents)[:40]}-{_FORM}-{NAME if vectors else 'words'}.npz"
        self._index = _kept(file, documents, vectors) or self._made(file, documents, vectors)
        if not self._index.passages:
            raise LoadError(f"knowledge base {self.path}: there are headings alone, and no text below them")
        self._index.search("warm up 预热")
        return self._index

    @property
    def index(self) -> Index:
        """What was loaded last; loads where nothing was."""
        return self._index or self.load()

    def _made(self, file: Path, documents: list[Document], vectors: Vectors | None) -> Index:
        passages = passages_of(documents)
        shown = [_shown(documents, passage) for passage in passages]
        postings = postings_of([terms_of(text) for text in shown])
        table = vectors.of(shown) if vectors else None
        spans = [(p.document, p.start, p.end) for p in passages]
        arrays = {**packed(postings), "spans": np.array(spans, np.int64).reshape(-1, 3)}
        if table is not None:
            arrays["table"] = table.astype(np.float16)
            table = arrays["table"].astype(np.float32)
        try:
            _put(file, lambda target: np.savez(target, **arrays))
        except OSError as error:
            log.warning("the index of %s is not kept: %s: %s", self.path, file, error.strerror or error)
        return Index(documents, passages, postings, table, vectors)


def _shown(documents: Sequence[Document], passage: Passage) -> str:
    """What is searched: the headings above it count as its words."""
    return f"{passage.title}\n{documents[passage.document].text[passage.start : passage.end]}"


def _kept(file: Path, documents: list[Document], vectors: Vectors | None) -> Index | None:
    """The index of before, None where there is none that can be used."""
    if not file.exists():
        return None
    try:
        with np.load(file) as data:
            postings = unpacked(data)
            table = data["table"].astype(np.float32) if vectors else None
            spans = [tuple(row) for row in data["spans"].tolist()]
        passages = passages_of(documents)
        sound = spans == [(p.document, p.start, p.end) for p in passages] and len(spans) == len(
            postings.lengths
        )
        if not sound or (table is not None and table.shape != (len(spans), DIMENSIONS)):
            raise ValueError("it is another's")
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
        log.warning("the index %s is made anew: %s", file, error)
        return None
    return Index(documents, passages, postings, table, vectors)


def _put(file: Path, write: Callable[[Any], None]) -> None:
    """At once: a reader sees the whole file or none."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=".index.")
    try:
        with os.fdopen(handle, "wb") as target:
            write(target)
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _cache_folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path("~/.cache").expanduser()) / "edgeway" / "knowledge"


def default_path() -> Path | None:
    """`$EDGEWAY_KB`, else Edgeway's own docs where this runs from a checkout.

    Raises:
        LoadError: EDGEWAY_KB names nothing that is there.
    """
    named = os.environ.get("EDGEWAY_KB")
    if named:
        path = Path(named).expanduser()
        if not path.exists():
            raise LoadError(f"EDGEWAY_KB names {path}, which is not there")
        return path
    docs = Path(__file__).resolve().parents[3] / "docs"
    return docs if (docs / "rules.md").is_file() else None
