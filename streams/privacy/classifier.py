"""A linear classifier of words: the rows of a word's features, added up. numpy alone, no other library."""

from __future__ import annotations

from functools import cache
from importlib import resources
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from streams.privacy.features import Token, features_of, tokens_of
from streams.privacy.lexicon import marks

CLASSES = ("", "person", "location", "address", "organization", "nationality")
"""The kinds that are told apart; the first is no finding."""


class Model(NamedTuple):
    """`weights` has a row for each bucket of features and a column for each class, as int8 times `scale`;
    words whose chance of being none of the kinds is below 1 - `threshold` are findings."""

    weights: npt.NDArray[np.int8]
    scale: float
    threshold: float

    def chances(self, text: str) -> list[tuple[Token, npt.NDArray[np.float32]]]:
        """The words of `text` with the chance of each class."""
        tokens = tokens_of(text, marks())
        seen = list(features_of(tokens))
        if not seen:
            return []
        sizes = [len(rows) for _, rows in seen]
        rows = np.fromiter((row for _, rows in seen for row in rows), np.int64, sum(sizes))
        starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        scores = np.add.reduceat(self.weights[rows], starts, axis=0, dtype=np.int32) * self.scale
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        scores /= scores.sum(axis=1, keepdims=True)
        return [
            (tokens[index], chance)
            for (index, _), chance in zip(seen, scores.astype(np.float32), strict=True)
        ]


@cache
def model() -> Model:
    """The model that ships with the package."""
    raw = resources.files("streams.privacy").joinpath("data", "names.npz").read_bytes()
    with np.load(BytesIO(raw), allow_pickle=False) as held:
        found: dict[str, Any] = dict(held)
    return Model(found["weights"], float(found["scale"]), float(found["threshold"]))
