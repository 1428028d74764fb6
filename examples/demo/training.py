"""Small softmax networks in numpy: what `train.py` needs of machine learning.

Adam: Kingma and Ba, 2015 (arXiv 1412.6980). Temperature scaling: Guo et al., 2017 (arXiv 1706.04599).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .features import FeatureSpec, counts

Floats = NDArray[Any]  # float32 throughout
Ints = NDArray[np.int64]
Rows = Any  # sparse.csr_matrix, float32, one text a row


def rows_of(texts: Sequence[str], spec: FeatureSpec) -> Rows:
    """Sparse counts, shape [len(texts), spec.dim]."""
    found = [counts(text, spec) for text in texts]
    starts = np.cumsum([0, *(len(row) for row in found)])
    buckets = np.array([bucket for row in found for bucket in row], np.int32)
    values = np.array([count for row in found for count in row.values()], np.float32)
    return sparse.csr_matrix((values, buckets, starts), shape=(len(texts), spec.dim))


def idf_of(rows: Rows) -> Floats:
    """Smoothed inverse document frequency over these rows: ln((1 + n) / (1 + df)) + 1."""
    hits = np.bincount(rows.indices, minlength=rows.shape[1])
    return (np.log((1 + rows.shape[0]) / (1 + hits)) + 1).astype(np.float32)


def weigh(rows: Rows, idf: Floats) -> Rows:
    """(1 + ln count) * idf, each row to length 1: the same arithmetic as at the head of the ONNX graph."""
    values = (1 + np.log(rows.data)) * idf[rows.indices]
    lengths = np.sqrt(np.add.reduceat(np.append(values * values, 0), rows.indptr[:-1]))
    sizes = np.diff(rows.indptr)
    scaled = values / np.repeat(np.maximum(np.where(sizes > 0, lengths, 1), 1e-6), sizes)
    return sparse.csr_matrix((scaled.astype(np.float32), rows.indices, rows.indptr), shape=rows.shape)


@dataclass(frozen=True)
class Recipe:
    """One hidden layer; dropout of inputs and of the layer; the rate falls to 0 in a line."""

    hidden: int = 192
    epochs: int = 30
    rate: float = 0.003
    batch: int = 256
    decay: float = 1e-4
    input_dropout: float = 0.4
    hidden_dropout: float = 0.5


class Net(NamedTuple):
    """Shapes [dim, hidden], [hidden], [hidden, labels], [labels]."""

    first: Floats
    bias: Floats
    second: Floats
    last: Floats

    def logits(self, x: Rows) -> Floats:
        found: Floats = np.maximum(x @ self.first + self.bias, 0) @ self.second + self.last
        return found


def softmax(logits: Floats) -> Floats:
    exps = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: Floats = exps / exps.sum(axis=1, keepdims=True)
    return shares


def _kept(rng: np.random.Generator, shape: tuple[int, ...], dropped: float) -> Floats:
    kept: Floats = (rng.random(shape, dtype=np.float32) > dropped) / np.float32(1 - dropped)
    return kept


def _start(rng: np.random.Generator, dim: int, hidden: int, labels: int) -> Net:
    first = rng.standard_normal((dim, hidden), np.float32) * np.float32(0.05)
    second = rng.standard_normal((hidden, labels), np.float32) / np.float32(np.sqrt(hidden))
    return Net(first, np.zeros(hidden, np.float32), second, np.zeros(labels, np.float32))


def _gradients(x: Rows, wanted: Ints, net: Net, recipe: Recipe, rng: np.random.Generator) -> list[Floats]:
    """Of the mean cross-entropy of one batch, dropout applied."""
    x.data *= _kept(rng, x.data.shape, recipe.input_dropout)
    inner = x @ net.first + net.bias
    gate = (inner > 0) * _kept(rng, inner.shape, recipe.hidden_dropout)
    inner *= gate
    error = softmax(inner @ net.second + net.last)
    error[np.arange(len(wanted)), wanted] -= 1
    error /= len(wanted)
    back = (error @ net.second.T) * gate
    return [x.T @ back, back.sum(axis=0), inner.T @ error, error.sum(axis=0)]


def fit(x: Rows, wanted: Ints, labels: int, recipe: Recipe, seed: int) -> Net:
    """A network trained on weighed rows; the same seed gives the same network."""
    rng = np.random.default_rng(seed)
    net = _start(rng, x.shape[1], recipe.hidden, labels)
    means, squares = ([np.zeros_like(weight) for weight in net] for _ in range(2))
    step, steps = 0, recipe.epochs * -(-x.shape[0] // recipe.batch)
    for _ in range(recipe.epochs):
        order = rng.permutation(x.shape[0])
        for begin in range(0, len(order), recipe.batch):
            some = order[begin : begin + recipe.batch]
            slopes = _gradients(x[some], wanted[some], net, recipe, rng)
            step += 1
            rate = recipe.rate * (1 - step / steps)
            for weight, mean, square, slope in zip(net, means, squares, slopes, strict=True):
                mean += np.float32(0.1) * (slope - mean)
                slope *= slope
                square += np.float32(0.01) * (slope - square)
                # As long as the squares are few they are too small, which keeps the first steps long.
                move = mean / (np.sqrt(square) + np.float32(1e-8))
                move *= np.float32(rate / (1 - 0.9**step))
                if weight.ndim == 2:
                    weight *= np.float32(1 - rate * recipe.decay)
                weight -= move
    return net


def average(nets: Sequence[Net]) -> Net:
    """One wider network that gives the averaged logits of `nets`, all over the same rows."""
    share = np.float32(1 / len(nets))
    first, bias, second, last = zip(*nets, strict=True)
    return Net(np.hstack(first), np.hstack(bias), np.vstack(second) * share, sum(last) * share)


def temperature(scores: Floats, wanted: Ints) -> float:
    """The divisor of the logits with the least negative log-likelihood, by a grid of step 0.01."""
    grid = np.arange(0.2, 3.0, 0.01)
    picked = np.arange(len(wanted)), wanted
    return float(min(grid, key=lambda t: -np.log(softmax(scores / np.float32(t))[picked] + 1e-12).mean()))
