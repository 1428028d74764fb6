"""Which words are common, and which are names: the lists that ship with the package, loaded once."""

from __future__ import annotations

import gzip
import unicodedata
from functools import cache
from importlib import resources

RANK = 7
"""Mask of the rank among English words: 0 none, 1 of the first 1,500, 2 of 8,000, 3 of 30,000, 4 others."""
FIRST, LAST, CITY, COUNTRY, FOREIGN = 8, 16, 32, 64, 128
"""Marks: a first name, a last name, part of a city's name, of a country's, a common word elsewhere."""
KNOWN_FIRST, KNOWN_LAST = 256, 512
"""Marks: the name stands in the lists of four countries or more."""

_PAIRS = str.maketrans(
    {"ß": "ss", "ø": "o", "đ": "d", "ł": "l", "æ": "ae", "œ": "oe", "þ": "th", "ð": "d", "ı": "i"}
)


def fold(text: str) -> str:
    """`text` in lower case without accents, as the lists have it."""
    if text.isascii():
        return text.lower()
    bare = unicodedata.normalize("NFKD", text.lower())
    return "".join(char for char in bare if not unicodedata.combining(char)).translate(_PAIRS)


@cache
def marks() -> dict[str, int]:
    """The marks of every known word; 140,000 of them take some 15 MB."""
    raw = gzip.decompress(_data("words.txt.gz")).decode("ascii")
    found: dict[str, int] = {}
    for line in raw.splitlines():
        word, _, mark = line.partition(" ")
        found[word] = int(mark)
    return found


@cache
def places() -> frozenset[str]:
    """Countries, their people, large regions: folded, of one to five words."""
    return frozenset(_data("places.txt").decode().splitlines())


@cache
def heads() -> frozenset[str]:
    """The first words of `places`."""
    return frozenset(place.split(" ", 1)[0] for place in places())


def _data(name: str) -> bytes:
    return resources.files("streams.privacy").joinpath("data", name).read_bytes()
