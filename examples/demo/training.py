"""A small softmax network in numpy: what `train.py` needs of machine learning.

Adam: Kingma and Ba, 2015 (arXiv 1412.6980). Temperature scaling and expected calibration error:
Guo et al., 2017 (arXiv 1706.04599).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .features import FeatureSpec, counts

Floats = NDArray[Any]  # float32 throughout
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """Sparse counts, one text a row: `buckets[starts[i]:starts[i + 1]]` were hit `values[...]` times."""

    starts: Ints
    buckets: Ints
    values: Floats
    dim: int

    @classmethod
    def of(cls, texts: Sequence[str], spec: FeatureSpec) -> "Rows":
        found = [counts(text, spec) for text in texts]
        starts = np.cumsum([0, *(len(row) for row in found)])
        buckets = np.array([bucket for row in found for bucket in row], np.int64)
        values = np.array([count for row in found for count in row.values()], np.float32)
        return cls(starts, buckets, values, spec.dim)

    def dense(self, rows: Ints) -> Floats:
        out = np.zeros((len(rows), self.dim), np.float32)
        for place, row in enumerate(rows):
            span = slice(self.starts[row], self.starts[row + 1])
            out[place, self.buckets[span]] = self.values[span]
        return out

    def idf(self, rows: Ints) -> Floats:
        """Smoothed inverse document frequency over these rows: ln((1 + n) / (1 + df)) + 1."""
        hits = np.zeros(self.dim)
        for row in rows:
            hits[self.buckets[self.starts[row] : self.starts[row + 1]]] += 1
        return (np.log((1 + len(rows)) / (1 + hits)) + 1).astype(np.float32)


@dataclass(frozen=True)
class Recipe:
    """`hidden` 0 is a linear model; `seeds` more than one is an ensemble whose logits are averaged."""

    hidden: int
    epochs: int
    rate: float
    seeds: tuple[int, ...] = (0,)
    batch: int = 128
    decay: float = 1e-4
    input_dropout: float = 0.1
    hidden_dropout: float = 0.5


def weigh(raw: Floats, idf: Floats) -> Floats:
    """(1 + ln count) * idf, each row to length 1: the same arithmetic as at the head of the ONNX graph."""
    x = (np.sign(raw) + np.log(np.maximum(raw, 1))) * idf
    unit: Floats = (x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-6)).astype(np.float32)
    return unit


def softmax(logits: Floats) -> Floats:
    exps = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: Floats = exps / exps.sum(axis=1, keepdims=True)
    return shares


def _dropout(rng: np.random.Generator, shape: tuple[int, ...], share: float) -> Floats:
    kept: Floats = (rng.random(shape, dtype=np.float32) > share) / np.float32(1 - share)
    return kept


def _start(rng: np.random.Generator, dim: int, hidden: int, labels: int) -> list[Floats]:
    if not hidden:
        return [np.zeros((dim, labels), np.float32), np.zeros(labels, np.float32)]
    first = rng.standard_normal((dim, hidden), np.float32) * np.float32(0.05)
    second = rng.standard_normal((hidden, labels), np.float32) / np.float32(np.sqrt(hidden))
    return [first, np.zeros(hidden, np.float32), second, np.zeros(labels, np.float32)]


def _gradients(
    x: Floats, wanted: Ints, weights: list[Floats], recipe: Recipe, rng: np.random.Generator
) -> list[Floats]:
    """Of the mean cross-entropy of one batch, dropout applied."""
    x = x * _dropout(rng, x.shape, recipe.input_dropout)
    inner, gate = x, None
    if recipe.hidden:
        inner = x @ weights[0] + weights[1]
        gate = (inner > 0) * _dropout(rng, inner.shape, recipe.hidden_dropout)
        inner = inner * gate
    error = softmax(inner @ weights[-2] + weights[-1])
    error[np.arange(len(wanted)), wanted] -= 1
    error /= len(wanted)
    last = [inner.T @ error, error.sum(axis=0)]
    if gate is None:
        return last
    back = (error @ weights[-2].T) * gate
    return [x.T @ back, back.sum(axis=0), *last]


def _fit_one(data: Rows, rows: Ints, wanted: Ints, idf: Floats, recipe: Recipe, seed: int) -> list[Floats]:
    rng = np.random.default_rng(seed)
    weights = _start(rng, data.dim, recipe.hidden, int(wanted.max()) + 1)
    means, squares = ([np.zeros_like(w) for w in weights] for _ in range(2))
    step, steps = 0, recipe.epochs * -(-len(rows) // recipe.batch)
    for _ in range(recipe.epochs):
        order = rng.permutation(rows)
        for begin in range(0, len(order), recipe.batch):
            some = order[begin : begin + recipe.batch]
            slopes = _gradients(weigh(data.dense(some), idf), wanted[some], weights, recipe, rng)
            step += 1
            rate = recipe.rate * (1 - step / steps)
            for weight, mean, square, slope in zip(weights, means, squares, slopes, strict=True):
                mean += np.float32(0.1) * (slope - mean)
                square += np.float32(0.01) * (slope * slope - square)
                move = (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
                weight -= (rate * (move + (recipe.decay if weight.ndim == 2 else 0) * weight)).astype(
                    np.float32
                )
    return weights


def fit(data: Rows, rows: Ints, wanted: Ints, idf: Floats, recipe: Recipe) -> list[Floats]:
    """Weights [W, b] or [W1, b1, W2, b2]. An ensemble becomes one wider network with the averaged logits."""
    members = [_fit_one(data, rows, wanted, idf, recipe, seed) for seed in recipe.seeds]
    if len(members) == 1:
        return members[0]
    if not recipe.hidden:
        return [np.mean(parts, axis=0) for parts in zip(*members, strict=True)]
    share = np.float32(1 / len(members))
    first, bias, second, last = zip(*members, strict=True)
    return [np.hstack(first), np.hstack(bias), np.vstack(second) * share, sum(last) * share]


def logits(data: Rows, rows: Ints, idf: Floats, weights: list[Floats]) -> Floats:
    x = weigh(data.dense(rows), idf)
    if len(weights) == 4:
        x = np.maximum(x @ weights[0] + weights[1], 0)
    return x @ weights[-2] + weights[-1]


def temperature(scores: Floats, wanted: Ints) -> float:
    """The divisor of the logits with the least negative log-likelihood, by a grid of step 0.01."""
    grid = np.arange(0.2, 3.0, 0.01)
    picked = np.arange(len(wanted)), wanted
    return float(min(grid, key=lambda t: -np.log(softmax(scores / np.float32(t))[picked] + 1e-12).mean()))


def ece(confidence: Floats, right: NDArray[np.bool_], bins: int = 15) -> float:
    """Expected calibration error over bins of equal width: sum of |confidence - accuracy| * share of rows."""
    places = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = (abs(confidence[places == k].sum() - right[places == k].sum()) for k in range(bins))
    return float(sum(gaps) / len(right))
