"""Text to a fixed vector of hashed n-gram counts: the first step of both intent models.

It needs numpy alone. The hash is zlib.crc32, so the same text gives the same vector on every machine
and in every process (Python's own `hash` is salted). Weighting (log counts, inverse document
frequency, length) is inside the ONNX graphs: a model needs nothing from here but the counts.
"""

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TOKEN = re.compile(r"[a-z0-9]+(?:'[a-z]+)?|[^\sa-z0-9']")


@dataclass(frozen=True)
class FeatureSpec:
    """Which n-grams are counted, and into how many buckets.

    `words`: lengths of word n-grams (2 and more see the ends of the text as words of their own);
    `chars`: lengths of character n-grams inside `<word>`; `dim`: number of buckets; `skips`: pairs of words
    so many places apart; `pairs`: every two different words of three characters and more, in any order.
    """

    dim: int
    words: tuple[int, ...]
    chars: tuple[int, ...]
    skips: tuple[int, ...] = ()
    pairs: bool = False

    def to_card(self) -> dict[str, Any]:
        """As a model card holds it."""
        return asdict(self)


def specs_of(card: Mapping[str, Any]) -> tuple[FeatureSpec, ...]:
    """The specs written under `features` in a model card, in their order."""
    made = []
    for block in card["features"]["blocks"]:
        lists = {key: tuple(block[key]) for key in ("words", "chars", "skips")}
        made.append(FeatureSpec(dim=int(block["dim"]), pairs=bool(block["pairs"]), **lists))
    return tuple(made)


ORDERED = FeatureSpec(dim=8192, words=(1, 2), chars=(3, 4), skips=(2,))
PAIRED = FeatureSpec(dim=8192, words=(1, 2), chars=(3,), pairs=True)
SPECS = (ORDERED, PAIRED)
_PAIRED_WORDS = 40


def tokens(text: str) -> list[str]:
    """Lower-case words after Unicode NFKC; every other visible character is a token of its own."""
    return _TOKEN.findall(unicodedata.normalize("NFKC", text).lower().replace("\u2019", "'"))


def grams(text: str, spec: FeatureSpec) -> Iterator[str]:
    """The n-grams of one text, each marked with its kind."""
    found = tokens(text)
    padded = ["<s>", *found, "</s>"]
    for size in spec.words:
        row = found if size == 1 else padded
        for start in range(len(row) - size + 1):
            yield f"w{size} " + " ".join(row[start : start + size])
    for apart in spec.skips:
        for start in range(len(padded) - apart):
            yield f"s{apart} {padded[start]} {padded[start + apart]}"
    if spec.pairs:
        # Of the first words only: their number would grow with the square of the text's length.
        longer = dict.fromkeys(token for token in found if len(token) > 2)
        for one, other in combinations(sorted(islice(longer, _PAIRED_WORDS)), 2):
            yield f"p {one} {other}"
    for size in spec.chars:
        for token in found:
            word = f"<{token}>"
            for start in range(len(word) - size + 1):
                yield f"c{size} " + word[start : start + size]


def counts(text: str, spec: FeatureSpec) -> Counter[int]:
    """How often each bucket was hit by one text."""
    return Counter(zlib.crc32(gram.encode("utf-8", "replace")) % spec.dim for gram in grams(text, spec))


def features(texts: Sequence[str], specs: Sequence[FeatureSpec] = SPECS) -> NDArray[np.float32]:
    """Counts of all texts, the specs beside each other: shape [len(texts), sum of dims], float32.

    A text without a token is all zero.
    """
    out = np.zeros((len(texts), sum(spec.dim for spec in specs)), np.float32)
    for row, text in enumerate(texts):
        begin = 0
        for spec in specs:
            found = counts(text, spec)
            out[row, [begin + bucket for bucket in found]] = list(found.values())
            begin += spec.dim
    return out
