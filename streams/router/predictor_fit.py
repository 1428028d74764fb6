"""Training of a predictor: two logistic regressions on hashed texts, by accelerated gradient descent.

Source of the step: Nesterov's method as in FISTA, Beck and Teboulle, 2009; rows have length 1, so the slope
of the loss changes by at most 1 / 2 (softmax, with an offset).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from streams.router.predictor import TextPredictor, grams, lead

BUCKETS = 2**14
SKETCH_BUCKETS = 2**11
SKETCH_BYTES = 250_000
FOLDS = 3
_STEPS = 200
_STEP = 2.0
_SLOPE_DECAY = 1e-2
Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


def fit_predictor(
    texts: Sequence[str],
    accepted: Sequence[float],
    labels: Sequence[str] | None = None,
    *,
    field: str = "text",
    decay: float = 3e-4,
    sketch_decay: float = 1e-5,
) -> TextPredictor:
    """The predictor of `accepted` (1 where the local answer reached the threshold, else 0) by text.

    `labels` are the right answers, or those of the local model: with two or more different ones a sketch is
    trained, and what it adds is learned from texts that it has not seen. The decays are L2 penalties a
    sample. Blank texts are left out.

    Raises:
        ValueError: no text that says anything, other numbers of outcomes or labels, too many labels.
    """
    if len(texts) != len(accepted) or (labels is not None and len(labels) != len(texts)):
        raise ValueError("give one outcome, and one label where there are labels, for each text")
    rows = [grams(text) for text in texts]
    kept = [place for place, row in enumerate(rows) if row]
    if not kept:
        raise ValueError("no text holds a word; give texts as the router will see them")
    rows = [rows[place] for place in kept]
    wanted = np.array([float(accepted[place]) for place in kept], np.float32)
    if not ((wanted >= 0) & (wanted <= 1)).all():
        raise ValueError("outcomes must lie within 0 and 1")
    names, classes = np.unique([labels[place] for place in kept] if labels else [""], return_inverse=True)
    if len(names) * 64 > SKETCH_BYTES:
        raise ValueError(f"{len(names)} labels are too many for a sketch; leave the labels out")
    if len(names) < 2:
        weights, bias, _ = _acceptance(rows, wanted, np.zeros(len(rows), np.float32), decay)
        return TextPredictor(weights, bias, field)
    size = min(SKETCH_BUCKETS, SKETCH_BYTES // len(names))
    x = _dense(rows, size)
    leads = np.zeros(len(rows), np.float32)
    order = np.arange(len(rows)) % FOLDS
    for fold in range(FOLDS if len(rows) >= FOLDS else 0):
        table, offsets = _softmax_fit(x[order != fold], classes[order != fold], len(names), sketch_decay)
        leads[order == fold] = [lead(row) for row in x[order == fold] @ table + offsets]
    weights, bias, slope = _acceptance(rows, wanted, leads, decay)
    table, offsets = _softmax_fit(x, classes, len(names), sketch_decay)
    return TextPredictor(weights, bias, field, slope, table, offsets)


def _acceptance(
    rows: list[list[int]], wanted: Floats, leads: Floats, decay: float
) -> tuple[Floats, float, float]:
    """Weights by bucket, bias, and the slope of the sketch's lead."""
    sizes = np.array([len(row) for row in rows])
    where = np.concatenate([np.array(row) % BUCKETS for row in rows])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    share, spread = 1 / np.sqrt(sizes), np.repeat(np.arange(len(sizes)), sizes)
    # Leads that hardly differ say nothing: taken by their own spread they would say everything.
    scale = max(float(leads.std()), 0.5)
    scaled = (leads - leads.mean()) / scale
    # The rate of the data is where a model that knows nothing stands.
    rate = (float(wanted.sum()) + 0.5) / (len(wanted) + 1)
    begin = np.zeros(BUCKETS + 2)
    begin[-1] = np.log(rate / (1 - rate))

    def slopes(at: NDArray[np.float64]) -> NDArray[np.float64]:
        odds = np.add.reduceat(at[where], starts) * share + at[-2] * scaled + at[-1]
        error = (1 / (1 + np.exp(-np.clip(odds, -30, 30))) - wanted) / len(wanted)
        found = np.bincount(where, (error * share)[spread], len(at)) + decay * at
        found[-2:] = (error * scaled).sum() + _SLOPE_DECAY * at[-2], error.sum()
        return found

    done = _descend(begin, slopes, _STEPS)
    slope = float(done[-2]) / scale
    return done[:-2].astype(np.float32), float(done[-1]) - slope * float(leads.mean()), slope


def _softmax_fit(x: Floats, classes: Ints, count: int, decay: float) -> tuple[Floats, Floats]:
    ones = np.concatenate([x, np.ones((len(x), 1), np.float32)], axis=1)
    rows = np.arange(len(x))

    def slopes(at: Floats) -> Floats:
        scores = ones @ at
        error = np.exp(scores - scores.max(axis=1, keepdims=True))
        error /= error.sum(axis=1, keepdims=True)
        error[rows, classes] -= 1
        found: Floats = ones.T @ error / np.float32(len(x)) + np.float32(decay) * at
        return found

    done = _descend(np.zeros((x.shape[1] + 1, count), np.float32), slopes, _STEPS)
    return done[:-1].astype(np.float32), done[-1].astype(np.float32)


def _descend(
    begin: NDArray[np.floating], slopes: Callable[..., NDArray[np.floating]], steps: int
) -> NDArray[np.floating]:
    now, ahead, pace = begin, begin, 1.0
    for _ in range(steps):
        moved = ahead - begin.dtype.type(_STEP) * slopes(ahead)
        faster = (1 + (1 + 4 * pace * pace) ** 0.5) / 2
        ahead = moved + begin.dtype.type((pace - 1) / faster) * (moved - now)
        now, pace = moved, faster
    return now


def _dense(rows: list[list[int]], size: int) -> Floats:
    out = np.zeros((len(rows), size), np.float32)
    for place, row in enumerate(rows):
        np.add.at(out[place], np.array(row) % size, np.float32(1 / len(row) ** 0.5))
    return out
