"""`local/text/tokenize`, also as `finance/tokenize`: words, numbers with their units, sentences."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Final

from msgspec import Meta

from workers.backends.function import capability
from workers.library.nlp.given import text_of
from workers.library.nlp.sentences import sentences_of
from workers.library.nlp.tokens import Token, tokens_of

_CARD: Final[dict[str, Any]] = {
    "model": "rjieba-and-rules",
    "cacheable": True,
    "licence": "Apache-2.0; rjieba MIT, its dictionary jieba's (MIT)",
    "source": "rjieba 0.2 (jieba-rs) for Chinese, rules of this project for the rest",
}
QUALITY = (
    "F1 of words against 40 Chinese sentences of this project, cut by hand: 0.88; against public corpora that"
    " are not in the repository, UD Chinese-GSDSimp test (12,012 words, which are cut finer there): 0.80, UD"
    " English-EWT test (25,097, which parts don't and re-use): 0.92"
)


def _warm() -> None:
    tokens_of("预热 and warm up")


@capability("local/text/tokenize", quality=QUALITY, load=_warm, **_CARD)
@capability("local/finance/tokenize", quality=QUALITY, load=_warm, **_CARD)
@capability("cloud/finance/tokenize", quality=QUALITY, load=_warm, **_CARD)
def tokenize(
    text: str = "", query: str = "", most_tokens: Annotated[int, Meta(ge=1, le=20_000)] = 5_000
) -> dict[str, Any]:
    """Words, numbers with units and marks of English and Chinese text, with their places; sentences."""
    given = text_of(text, query)
    found = tokens_of(given)
    sentences = sentences_of(given)
    return {
        "tokens": [_shown(token) for token in found[:most_tokens]],
        "token_count": len(found),
        "left_out": max(0, len(found) - most_tokens),
        "kinds": dict(Counter(token.kind for token in found)),
        "sentences": [{"start": span.start, "end": span.end} for span in sentences[:most_tokens]],
        "sentence_count": len(sentences),
        "character_count": len(given),
    }


def _shown(token: Token) -> dict[str, Any]:
    said: dict[str, Any] = {"text": token.text, "kind": token.kind, "start": token.start, "end": token.end}
    if token.value is not None:
        said["value"] = token.value
    if token.unit is not None:
        said["unit"] = token.unit
    return said
