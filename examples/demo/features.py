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
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TOKEN = re.compile(r"[a-z0-9]+(?:'[a-z]+)?|[^\sa-z0-9']")


@dataclass(frozen=True)
class FeatureSpec:
    """Which n-grams are counted, and into how many buckets.

    `words`: lengths of word n-grams (2 and more see the ends of the text as words of their own);
    `chars`: lengths of character n-grams inside `<word>`; `dim`: number of buckets.
    """

    dim: int
    words: tuple[int, ...]
    chars: tuple[int, ...]

    @classmethod
    def from_card(cls, features: Mapping[str, Any]) -> "FeatureSpec":
        """The spec written under `features` in a model card."""
        return cls(int(features["dim"]), tuple(features["words"]), tuple(features["chars"]))


LOCAL = FeatureSpec(dim=2048, words=(1,), chars=())
CLOUD = FeatureSpec(dim=4096, words=(1, 2), chars=(3,))


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
    for size in spec.chars:
        for token in found:
            word = f"<{token}>"
            for start in range(len(word) - size + 1):
                yield f"c{size} " + word[start : start + size]


def counts(text: str, spec: FeatureSpec) -> Counter[int]:
    """How often each bucket was hit by one text."""
    return Counter(zlib.crc32(gram.encode("utf-8", "replace")) % spec.dim for gram in grams(text, spec))


def features(texts: Sequence[str], spec: FeatureSpec = LOCAL) -> NDArray[np.float32]:
    """Counts of all texts, shape [len(texts), spec.dim], float32. A text without a token is all zero."""
    out = np.zeros((len(texts), spec.dim), np.float32)
    for row, text in enumerate(texts):
        for bucket, count in counts(text, spec).items():
            out[row, bucket] = count
    return out
