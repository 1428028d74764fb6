"""Boxes in shares of an image: overlap, suppression, and those around what a map of classes shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Found(NamedTuple):
    """A thing in an image; its sides are shares of the image's width and height."""

    label: str
    score: float
    left: float
    top: float
    right: float
    bottom: float

    @property
    def area(self) -> float:
        return max(0.0, self.right - self.left) * max(0.0, self.bottom - self.top)


def overlap(one: Found, other: Found) -> float:
    """Intersection over union."""
    wide = min(one.right, other.right) - max(one.left, other.left)
    high = min(one.bottom, other.bottom) - max(one.top, other.top)
    if wide <= 0 or high <= 0:
        return 0.0
    both = wide * high
    whole = one.area + other.area - both
    # Of boxes thinner than a float can tell, nothing is left.
    return both / whole if whole > 0 else 0.0


def suppressed(found: Iterable[Found], most: float) -> list[Found]:
    """The surest first; of two with one label that overlap more than `most` the surer alone."""
    kept: list[Found] = []
    for one in sorted(found, key=lambda one: -one.score):
        if all(one.label != other.label or overlap(one, other) <= most for other in kept):
            kept.append(one)
    return kept


def around(
    scores: NDArray[np.float32], labels: Sequence[str], *, least_area: float, least_score: float
) -> list[Found]:
    """A box around each connected piece of a class; `scores` is height, width, classes, its first class is
    the background. A piece's score is the mean of its class's scores in it.
    """
    classes = scores.argmax(axis=2)
    high, wide = classes.shape
    found = []
    for index in (int(index) for index in np.unique(classes) if index):
        for piece in pieces(classes == index):
            if len(piece) < least_area * high * wide:
                continue
            rows, columns = piece[:, 0], piece[:, 1]
            score = float(scores[rows, columns, index].mean())
            if score >= least_score:
                sides = (
                    columns.min() / wide,
                    rows.min() / high,
                    (columns.max() + 1) / wide,
                    (rows.max() + 1) / high,
                )
                found.append(Found(labels[index], score, *(float(side) for side in sides)))
    return found


def pieces(mask: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
    """The places (row, column) of each piece of `mask` that hangs together by sides."""
    runs, owners = _runs(mask)
    by_owner: dict[int, list[Any]] = {}
    for (row, start, end), owner in zip(runs, owners, strict=True):
        places = np.empty((end - start, 2), np.intp)
        places[:, 0], places[:, 1] = row, np.arange(start, end)
        by_owner.setdefault(owner, []).append(places)
    return [np.concatenate(places) for places in by_owner.values()]


def _runs(mask: NDArray[np.bool_]) -> tuple[list[tuple[int, int, int]], list[int]]:
    """Runs of true places (row, start, end), and the piece each belongs to."""
    padded = np.zeros((mask.shape[0], mask.shape[1] + 2), np.int8)
    padded[:, 1:-1] = mask
    steps = np.diff(padded, axis=1)
    rows, starts = np.nonzero(steps == 1)
    ends = np.nonzero(steps == -1)[1]
    runs = list(zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True))
    parents = list(range(len(runs)))

    def root(at: int) -> int:
        while parents[at] != at:
            parents[at] = parents[parents[at]]
            at = parents[at]
        return at

    above = at = 0
    while at < len(runs):
        row, start, end = runs[at]
        while above < at and (
            runs[above][0] < row - 1 or (runs[above][0] == row - 1 and runs[above][2] <= start)
        ):
            above += 1
        look = above
        while look < at and runs[look][0] == row - 1 and runs[look][1] < end:
            parents[root(look)] = root(at)
            look += 1
        at += 1
    return runs, [root(at) for at in range(len(runs))]
