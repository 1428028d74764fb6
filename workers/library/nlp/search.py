"""Search over passages: BM25 (Robertson and Zaragoza 2009) mixed with the likeness of sentence vectors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import log
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from workers.library.nlp.stopwords import STOPWORDS
from workers.library.nlp.tokens import tokens_of

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
_K1: Final = 1.2
_B: Final = 0.5
_PLURALS = re.compile(r"(?:(?<=[sxz])es|(?<=[cs]h)es|(?<![su])s)$")
_ENDINGS = re.compile(r"(?:ing|ed|e|ie|y)$")


class Postings(NamedTuple):
    """Term k stands in passages places[edges[k]:edges[k+1]], times[...] in each. `lengths` [passages]."""

    terms: dict[str, int]
    edges: Ints
    places: Ints
    times: Floats
    lengths: Floats

    def weight(self, term: str) -> float:
        """Inverse document frequency; that of a term of one passage where it is in none."""
        place = self.terms.get(term)
        there = 1 if place is None else int(self.edges[place + 1] - self.edges[place])
        return log(1 + (len(self.lengths) - there + 0.5) / (there + 0.5))

    def scores(self, terms: Sequence[str]) -> Floats:
        """BM25 of each passage as a share of the most that these terms could reach, in [0, 1]."""
        found = np.zeros(len(self.lengths), np.float32)
        most = sum(self.weight(term) for term in terms) * (_K1 + 1)
        mean = max(1.0, float(self.lengths.mean()))
        for term in terms:
            if (place := self.terms.get(term)) is None:
                continue
            span = slice(int(self.edges[place]), int(self.edges[place + 1]))
            at, times = self.places[span], self.times[span]
            norm = _K1 * (1 - _B + _B * self.lengths[at] / mean)
            found[at] += np.float32(self.weight(term)) * times * (_K1 + 1) / (times + norm)
        return found / np.float32(most) if most else found


def postings_of(texts: Sequence[Sequence[str]]) -> Postings:
    """Of the terms of each passage."""
    where: dict[str, list[tuple[int, int]]] = {}
    for place, terms in enumerate(texts):
        for term, times in Counter(terms).items():
            where.setdefault(term, []).append((place, times))
    names = sorted(where)
    pairs = [pair for name in names for pair in where[name]]
    return Postings(
        {name: k for k, name in enumerate(names)},
        np.cumsum([0, *(len(where[name]) for name in names)], dtype=np.int32),
        np.array([place for place, _ in pairs], np.int32),
        np.array([times for _, times in pairs], np.float32),
        np.array([len(terms) for terms in texts], np.float32),
    )


def terms_of(text: str) -> list[str]:
    """Words without their endings, without those that say little; parts of `max_batch` besides it."""
    found = []
    for token in tokens_of(text):
        word = token.text.lower()
        if token.kind == "mark" or word in STOPWORDS:
            continue
        if token.kind == "latin":
            parts = re.split(r"[-.'\u2019]", word)
            found += [stem(part) for part in parts if part and part not in STOPWORDS]
        else:
            found.append(word)
    return found


def stem(word: str) -> str:
    """`batches` and `batching` as `batch`: endings are cut, whatever they mean."""
    if len(word) < 4 or not word.isascii():
        return word
    for endings in (_PLURALS, _ENDINGS):
        cut = endings.sub("", word)
        word = cut if len(cut) >= 3 else word
    return word


def packed(postings: Postings) -> dict[str, Any]:
    """As arrays for a file."""
    names = "\n".join(postings.terms).encode("utf-8", "replace")
    return {
        "terms": np.frombuffer(names, np.uint8),
        "edges": postings.edges,
        "places": postings.places,
        "times": postings.times,
        "lengths": postings.lengths,
    }


def unpacked(data: Any) -> Postings:
    """Raises KeyError or ValueError where the arrays are not those of `packed`."""
    names = bytes(data["terms"]).decode("utf-8").split("\n")
    return Postings(
        {name: k for k, name in enumerate(names)},
        data["edges"],
        data["places"],
        data["times"],
        data["lengths"],
    )
