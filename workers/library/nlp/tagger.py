"""A linear-chain CRF: weights of hashed features, and the best row of tags by Viterbi.

The weights are trained by `training.entities` (python-crfsuite); to tag, numpy is enough.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


class Tagger(NamedTuple):
    """`rows` maps a feature's hash to its row of `weights` [features + 1, tags], whose last is all zero;
    `moves` [tags, tags] weighs a tag after another.
    """

    tags: tuple[str, ...]
    rows: dict[int, int]
    weights: Floats
    moves: Floats

    def tag(self, features: Sequence[Sequence[str]]) -> tuple[list[str], Floats]:
        """The best tags, and how probable each of them is [units]; 1 where no unit is of a name."""
        if not features:
            return [], np.zeros(0, np.float32)
        scores = self.scores(features)
        best = best_row(scores, self.moves)
        tags = [self.tags[k] for k in best]
        if set(tags) == {"O"}:
            return tags, np.ones(len(tags), np.float32)
        return tags, shares_of(scores, self.moves)[np.arange(len(best)), best]

    def scores(self, features: Sequence[Sequence[str]]) -> Floats:
        last, rows = len(self.weights) - 1, self.rows
        places = [
            rows.get(zlib.crc32(name.encode("utf-8", "replace")), last) for row in features for name in row
        ]
        ends = np.cumsum([0, *(len(row) for row in features[:-1])])
        summed: Floats = np.add.reduceat(self.weights[places], ends, axis=0)
        return summed


def read_tagger(path: Path) -> Tagger:
    """From the file that `write_tagger` wrote."""
    with np.load(path) as data:
        weights = data["weights"].astype(np.float32) * data["step"]
        weights = np.vstack([weights, np.zeros((1, weights.shape[1]), np.float32)])
        tags = tuple(str(tag) for tag in data["tags"])
        rows = {int(key): row for row, key in enumerate(data["keys"])}
        return Tagger(tags, rows, weights, data["moves"].astype(np.float32))


def write_tagger(path: Path, tags: Sequence[str], weights: dict[int, Floats], moves: Floats) -> None:
    """Weights in steps of 1/16, one byte each."""
    keys = np.array(sorted(weights), np.uint32)
    step = np.float32(1 / 16)
    table = np.stack([weights[int(key)] for key in keys])
    bytes_: Any = np.clip(np.round(table / step), -127, 127).astype(np.int8)
    kept = bytes_.any(axis=1)
    np.savez_compressed(
        path, tags=np.array(tags), keys=keys[kept], weights=bytes_[kept], step=step, moves=moves
    )


def best_row(scores: Floats, moves: Floats) -> list[int]:
    """The places of the best tags (Viterbi), of scores [units, tags]."""
    best, back = scores[0], []
    for row in scores[1:]:
        paths = best[:, None] + moves
        back.append(paths.argmax(axis=0))
        best = paths.max(axis=0) + row
    tags = [int(best.argmax())]
    for step in reversed(back):
        tags.append(int(step[tags[-1]]))
    return tags[::-1]


def shares_of(scores: Floats, moves: Floats) -> Floats:
    """Marginal probabilities [units, tags] by the forward-backward algorithm, scaled at each unit."""
    seen = np.exp((scores - scores.max(axis=1, keepdims=True)).astype(np.float64))
    after, before = np.exp(moves.astype(np.float64)), np.exp(moves.T.astype(np.float64))
    ahead, behind = seen.copy(), np.ones_like(seen)
    for at in range(1, len(seen)):
        row = (ahead[at - 1] @ after) * seen[at]
        ahead[at] = row / row.sum()
    for at in range(len(seen) - 2, -1, -1):
        row = (behind[at + 1] * seen[at + 1]) @ before
        behind[at] = row / row.sum()
    both = ahead * behind
    shares: Floats = (both / both.sum(axis=1, keepdims=True)).astype(np.float32)
    return shares
