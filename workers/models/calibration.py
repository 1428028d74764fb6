"""Calibration of a confidence: monotone maps, how they are fitted, and the figures that judge them.

Confidences and outcomes are arrays of one length. An outcome is 1.0 for a right answer, 0.0 for a wrong one;
a score s between counts as a right answer of weight s and a wrong one of weight 1 - s. Nothing here raises on
degenerate data (all right, all wrong, one sample, equal confidences).

Expected calibration error and temperature: Guo et al., 2017 (arXiv 1706.04599). Isotonic fit: pool adjacent
violators, Zadrozny and Elkan, 2002.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workers.models.maps import DECIMALS, EPSILON, Curve, Map, Temperature, logit

Floats = NDArray[np.float64]
BINS = 15
FOLDS = 10
BLOCK = 25
"""Samples that a step of the isotonic fit holds at least: fewer would fit the noise at the ends."""
MARGIN = 1e-4
"""A richer map must lower the held-out loss by so much (nats a sample), else the simpler one is taken."""
_LEAST, _GOLDEN, _SECTIONS = 0.1, 0.6180339887498949, 24


class Figures(NamedTuple):
    """`ece` over 15 bins; share of answers at or above the threshold, and share of right ones among these.

    `accuracy` is 0 where nothing is accepted.
    """

    ece: float
    coverage: float
    accuracy: float


class _Block(NamedTuple):
    """Rows of neighbouring confidences."""

    begin: float
    end: float
    rows: int
    right: float

    @property
    def share(self) -> float:
        return (self.right + 0.5) / (self.rows + 1.0)


class Fit(NamedTuple):
    """A chosen map: its held-out figures beside those of the confidences as they came."""

    map: Map | None
    before: Figures
    after: Figures
    losses: dict[str, float]
    samples: int

    @property
    def method(self) -> str:
        """`temperature`, `isotonic`, or `none` where no map did better than none."""
        return "none" if self.map is None else self.map.method


def ece(confidences: ArrayLike, outcomes: ArrayLike, bins: int = BINS) -> float:
    """Expected calibration error: sum over bins of equal width of |confidence - accuracy| * share of rows."""
    sure, right = _pair(confidences, outcomes)
    if not len(sure):
        return 0.0
    places = np.minimum((sure * bins).astype(np.int64), bins - 1)
    gaps = np.bincount(places, sure, bins) - np.bincount(places, right, bins)
    return float(np.abs(gaps).sum() / len(sure))


def coverage_at(confidences: ArrayLike, outcomes: ArrayLike, threshold: float) -> tuple[float, float]:
    """Share of answers at or above `threshold`, and the share of right ones among these (0 of none)."""
    sure, right = _pair(confidences, outcomes)
    taken = sure >= threshold
    if not taken.any():
        return 0.0, 0.0
    return float(taken.mean()), float(right[taken].mean())


def figures(confidences: ArrayLike, outcomes: ArrayLike, threshold: float) -> Figures:
    """All three figures."""
    return Figures(ece(confidences, outcomes), *coverage_at(confidences, outcomes, threshold))


def loss(confidences: ArrayLike, outcomes: ArrayLike) -> float:
    """Mean negative log-likelihood of the outcomes, in nats."""
    sure, right = _pair(confidences, outcomes)
    if not len(sure):
        return 0.0
    sure = np.clip(sure, EPSILON, 1 - EPSILON)
    return float(-(right * np.log(sure) + (1 - right) * np.log(1 - sure)).mean())


def fit_temperature(confidences: ArrayLike, outcomes: ArrayLike) -> Temperature:
    """The divisor of the log-odds, within 0.1 and 10, with the least loss: by golden section, as the loss is
    convex in its inverse. 1 where no other is better."""
    sure, right = _pair(confidences, outcomes)
    if not len(sure):
        return Temperature(1.0)
    odds = logit(sure)

    def cost(inverse: float) -> float:
        return float((np.logaddexp(0.0, odds * inverse) - right * odds * inverse).mean())

    low, high = np.log(_LEAST), -np.log(_LEAST)
    for _ in range(_SECTIONS):
        left, other = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if cost(float(np.exp(left))) <= cost(float(np.exp(other))):
            high = other
        else:
            low = left
    found = float(np.exp((low + high) / 2))
    return Temperature(1.0 if cost(1.0) <= cost(found) + 1e-12 else 1.0 / found)


def fit_isotonic(confidences: ArrayLike, outcomes: ArrayLike) -> Curve:
    """The isotonic regression: flat over each block, a line between blocks and from (0, 0) to the first.

    Blocks begin with BLOCK samples of neighbouring confidence (all where there are fewer), and one right and
    one wrong answer of half weight keep every block off 0 and 1.
    """
    sure, right = _pair(confidences, outcomes)
    if not len(sure):
        return Curve((0.0, 1.0), (0.0, 1.0))
    order = np.argsort(sure, kind="stable")
    sure, right = sure[order], right[order]
    blocks: list[_Block] = []
    for span in _spans(sure):
        some = sure[span]
        blocks.append(_Block(float(some[0]), float(some[-1]), len(some), float(right[span].sum())))
        while len(blocks) > 1 and blocks[-2].share >= blocks[-1].share:
            last, other = blocks.pop(), blocks.pop()
            blocks.append(_Block(other.begin, last.end, other.rows + last.rows, other.right + last.right))
    points = {0.0: 0.0}
    for block in blocks:
        # Knots nearer to each other than this would make a slope that overflows.
        points[round(block.begin, DECIMALS)] = points[round(block.end, DECIMALS)] = block.share
    return Curve(tuple(points), tuple(points.values()))


FITS: dict[str, Callable[[ArrayLike, ArrayLike], Map]] = {
    "temperature": fit_temperature,
    "isotonic": fit_isotonic,
}


def choose(
    confidences: ArrayLike,
    outcomes: ArrayLike,
    threshold: float,
    *,
    folds: int = FOLDS,
    seed: int = 0,
    method: str | None = None,
    optional: bool = True,
) -> Fit:
    """The map with the least cross-validated loss, fitted on everything; its figures are held-out ones.

    None, temperature and isotonic are compared in this order, each of which must beat the best before it by
    MARGIN. `method` names one of them and so ends the choice; without
    `optional` there is some map, even where it changes next to nothing.
    """
    sure, right = _pair(confidences, outcomes)
    held = {"none": sure} | {name: np.empty_like(sure) for name in FITS}
    for rows, rest in _folds(len(sure), folds, seed):
        for name, fit in FITS.items():
            held[name][rows] = fit(sure[rest], right[rest]).apply(sure[rows])
    if len(sure) < 2:
        held = {"none": sure}
    losses = {name: loss(values, right) for name, values in held.items()}
    best = next(iter(losses if optional or len(losses) == 1 else FITS))
    best = method if method in losses else best
    for name in losses if method is None else ():
        if name == "none" and not optional:
            continue
        if losses[name] < losses[best] - MARGIN:
            best = name
    before, after = (figures(held[name], right, threshold) for name in ("none", best))
    found = None if best == "none" else FITS[best](sure, right)
    return Fit(found, before, after, losses, len(sure))


def _folds(count: int, folds: int, seed: int) -> list[tuple[Any, Any]]:
    order = np.random.default_rng(seed).permutation(count)
    parts = [part for part in np.array_split(order, min(folds, count) or 1) if len(part)]
    return [(part, np.setdiff1d(order, part, assume_unique=True)) for part in parts] if count > 1 else []


def _spans(ordered: Floats) -> list[slice]:
    """Runs of at least BLOCK sorted confidences; equal ones are never parted."""
    cuts = [0]
    while cuts[-1] < len(ordered):
        end = cuts[-1] + BLOCK
        if len(ordered) - end < BLOCK:
            end = len(ordered)
        elif ordered[end - 1] == ordered[end]:
            end = int(np.searchsorted(ordered, ordered[end], side="right"))
        cuts.append(end)
    return [slice(begin, end) for begin, end in pairwise(cuts)]


def _pair(confidences: ArrayLike, outcomes: ArrayLike) -> tuple[Floats, Floats]:
    sure = np.asarray(confidences, np.float64).ravel()
    right = np.asarray(outcomes, np.float64).ravel()
    if len(sure) != len(right):
        raise ValueError(f"{len(sure)} confidences and {len(right)} outcomes: give one outcome for each")
    if not (_within(sure) and _within(right)):
        raise ValueError("confidences and outcomes must lie within 0 and 1")
    return sure, right


def _within(values: Floats) -> bool:
    return bool(((values >= 0) & (values <= 1)).all())
