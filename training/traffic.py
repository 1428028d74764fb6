"""Trains the traffic forecast on simulated roads (training/roads.py) and writes the model and its card.

`python -m training.traffic`: a minute on one core, the same result each time. Figures are of networks and
days that neither training nor the choice of the intervals saw.
"""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from training.roads import DAY, Roads, simulate
from workers.library.traffic.model import (
    FOLDER,
    HORIZONS_MIN,
    PAST,
    QUANTILES,
    STEP_MIN,
    Model,
    features,
    forward,
    save,
)

Floats = NDArray[Any]
AHEAD = [minutes // STEP_MIN for minutes in HORIZONS_MIN]
USUAL_DAYS = 14
"""What is usual is known from so many days, which nothing else is taken from."""
TRAINED_ON, CALIBRATED_ON, MEASURED_ON = (11, 12, 13, 14, 15, 16), (21,), (31, 32)
"""Seeds of the networks."""
HIDDEN, EPOCHS, BATCH, RATE = 64, 24, 1024, 0.003


class Rows(NamedTuple):
    """Windows of shares [rows, PAST], the latest last, what is usual [rows, 1 + horizons], and what came
    [rows, horizons]."""

    own: Floats
    down: Floats
    up: Floats
    missing: Floats
    usual: Floats
    wanted: Floats
    free_kmh: Floats


class Figures(NamedTuple):
    """Mean absolute error in km/h by horizon; `held` is the share of values within the intervals."""

    model: list[float]
    without_usual: list[float]
    alone: list[float]
    persistence: list[float]
    time_of_day: list[float]
    held: list[float]


def rows_of(roads: Roads, count: int, seed: int) -> Rows:
    """`count` places and times of chance in the days after USUAL_DAYS, whose futures were all seen."""
    rng = np.random.default_rng(seed)
    segments, steps = roads.seen.shape
    usual = _usual(roads.seen)
    places = rng.integers(0, segments, count * 2)
    times = rng.integers(USUAL_DAYS * DAY + PAST, steps - max(AHEAD), count * 2)
    wanted = np.stack([roads.seen[places, times + ahead] for ahead in AHEAD], axis=1)
    windows = times[:, None] + np.arange(1 - PAST, 1)
    own = roads.seen[places[:, None], windows]
    good = ~np.isnan(wanted).any(axis=1) & ~np.isnan(own).all(axis=1)
    places, times, wanted, own = (each[good][:count] for each in (places, times, wanted, own))
    every = np.stack([_filled(row[None])[0] for row in roads.seen])
    windows = times[:, None] + np.arange(1 - PAST, 1)
    before: list[list[int]] = [[] for _ in roads.down]
    for place, after in enumerate(roads.down):
        for other in after:
            before[other].append(place)
    down = np.stack([every[roads.down[p]][:, w].min(axis=0) for p, w in zip(places, windows, strict=True)])
    up = np.stack([every[before[p] or [p]][:, w].mean(axis=0) for p, w in zip(places, windows, strict=True)])
    tods = np.stack(
        [usual[places, _kind(t) * DAY + t % DAY] for t in (times, *(times + a for a in AHEAD))], axis=1
    )
    return Rows(_filled(own), down, up, np.isnan(own).mean(axis=1), tods, wanted, roads.free_kmh[places])


def _kind(times: Floats) -> Floats:
    return (times // DAY % 7 >= 5).astype(np.int64)


def _usual(seen: Floats) -> Floats:
    """Means by segment of the first days: 288 of a workday, then 288 of a weekend's day."""
    days = seen[:, : USUAL_DAYS * DAY].reshape(len(seen), USUAL_DAYS, DAY)
    weekend = np.arange(USUAL_DAYS) % 7 >= 5
    found = np.concatenate(
        [np.nanmean(days[:, ~weekend], axis=1), np.nanmean(days[:, weekend], axis=1)], axis=1
    )
    return _filled(found)


def _filled(rows: Floats) -> Floats:
    """Each gap with the value before it, the first ones with the first known."""
    found = rows.copy()
    first = np.take_along_axis(rows, np.argmax(~np.isnan(rows), axis=1)[:, None], axis=1)[:, 0]
    last = first
    for column in range(rows.shape[1]):
        last = np.where(np.isnan(rows[:, column]), last, rows[:, column])
        found[:, column] = last
    return found


def inputs(rows: Rows, *, graph: bool = True, usual: bool = True) -> Floats:
    return features(
        rows.own,
        rows.down if graph else None,
        rows.up if graph else None,
        rows.usual if usual else None,
        rows.missing,
    )


def joined(networks: tuple[int, ...], count: int) -> Rows:
    parts = [rows_of(simulate(seed), count, seed) for seed in networks]
    return Rows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _part(rows: Rows, chosen: Floats) -> Rows:
    return Rows(*(column[chosen] for column in rows))


def examples(rows: Rows, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Inputs and what came, where graph and usual speeds are known of some rows only."""
    graph, usual = rng.random(len(rows.own)) < 0.7, rng.random(len(rows.own)) < 0.6
    made, wanted = [], []
    for has_graph in (True, False):
        for has_usual in (True, False):
            some = _part(rows, (graph == has_graph) & (usual == has_usual))
            made.append(inputs(some, graph=has_graph, usual=has_usual))
            wanted.append(some.wanted)
    return np.concatenate(made), np.concatenate(wanted).astype(np.float32)


def fit(x: Floats, wanted: Floats, seed: int = 5) -> Model:
    """Least pinball loss by Adam (Kingma and Ba 2015), the rate falling to 0 in a line."""
    rng = np.random.default_rng(seed)
    mean, scale = x.mean(axis=0), x.std(axis=0) + np.float32(1e-3)
    scaled = (x - mean) / scale
    change = wanted - x[:, :1]
    sizes = (x.shape[1], HIDDEN, HIDDEN, len(HORIZONS_MIN) * len(QUANTILES))
    weights = [rng.normal(0, np.sqrt(2 / a), (a, b)).astype(np.float32) for a, b in pairwise(sizes)]
    weights[-1] *= np.float32(0.1)
    biases = [np.zeros(size, np.float32) for size in sizes[1:]]
    values = [*weights, *biases]
    means, squares = ([np.zeros_like(value) for value in values] for _ in range(2))
    step, steps = 0, EPOCHS * (len(x) // BATCH)
    for _ in range(EPOCHS):
        order = rng.permutation(len(x))[: len(x) // BATCH * BATCH].reshape(-1, BATCH)
        for some in order:
            slopes = _slopes(weights, biases, scaled[some], change[some])
            step += 1
            rate = RATE * (1 - step / (steps + 1))
            for value, first, second, slope in zip(values, means, squares, slopes, strict=True):
                first += np.float32(0.1) * (slope - first)
                second += np.float32(0.001) * (slope * slope - second)
                unbiased = np.sqrt(second / (1 - 0.999**step)) + 1e-8
                value -= (rate / (1 - 0.9**step) * first / unbiased).astype(np.float32)
    return Model(tuple(weights), tuple(biases), mean, scale, np.zeros(len(HORIZONS_MIN), np.float32))


def _slopes(weights: list[Floats], biases: list[Floats], x: Floats, change: Floats) -> list[Floats]:
    layers = forward(weights, biases, x)
    said = layers[-1].reshape(len(x), len(HORIZONS_MIN), len(QUANTILES))
    above = said > change[:, :, None]
    back = (above - np.array(QUANTILES, np.float32)).astype(np.float32).reshape(len(x), -1) / np.float32(
        len(x)
    )
    of_weights, of_biases = [], []
    for number in range(len(weights) - 1, -1, -1):
        of_weights.append(layers[number].T @ back)
        of_biases.append(back.sum(axis=0))
        if number:
            back = (back @ weights[number].T) * (layers[number] > 0)
    return [*of_weights[::-1], *of_biases[::-1]]


def calibrated(model: Model, rows: Rows) -> Model:
    """With the outer quantiles moved so that they hold 80 % of `rows`."""
    said = model(inputs(rows))
    over = np.maximum(said[:, :, 0] - rows.wanted, rows.wanted - said[:, :, 2])
    return model._replace(moved=np.quantile(over, 0.8, axis=0).astype(np.float32))


def evaluate(model: Model, rows: Rows) -> Figures:
    def error(said: Floats) -> list[float]:
        return [
            round(float(value), 2)
            for value in (np.abs(said - rows.wanted) * rows.free_kmh[:, None]).mean(axis=0)
        ]

    said = model(inputs(rows))
    held = (said[:, :, 0] <= rows.wanted) & (rows.wanted <= said[:, :, 2])
    return Figures(
        error(said[:, :, 1]),
        error(model(inputs(rows, usual=False))[:, :, 1]),
        error(model(inputs(rows, graph=False, usual=False))[:, :, 1]),
        error(np.repeat(rows.own[:, -1:], len(AHEAD), axis=1)),
        error(rows.usual[:, 1:]),
        [round(float(share), 3) for share in held.mean(axis=0)],
    )


def measured_on() -> Rows:
    return joined(MEASURED_ON, 20_000)


def quality(figures: Figures) -> str:
    """The card's line."""
    errors = {name: "/".join(f"{value:.2f}" for value in getattr(figures, name)) for name in Figures._fields}
    return (
        f"mean absolute error at 5/15/30/60 min on days held out of simulated roads: {errors['model']} km/h"
        f" (persistence {errors['persistence']}, mean of the time of day {errors['time_of_day']};"
        f" {errors['without_usual']} without other days, {errors['alone']} also without neighbours);"
        f" 80 % intervals hold {100 * min(figures.held):.0f} to {100 * max(figures.held):.0f} %"
    )


def main() -> None:
    model = fit(*examples(joined(TRAINED_ON, 40_000), np.random.default_rng(3)))
    model = calibrated(model, joined(CALIBRATED_ON, 40_000))
    figures = evaluate(model, measured_on())
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / "model.npz"
    save(model, path)
    card = {
        "name": "road-speed",
        "version": "1",
        "capability": "traffic/forecast",
        "side": "local",
        "licence": "Apache-2.0",
        "source": "trained here on simulated roads (training/roads.py); no data of real ones",
        "quality": quality(figures),
        "figures": figures._asdict(),
        "trained_by": "training/traffic.py",
        "sha256": {"model.npz": hashlib.sha256(path.read_bytes()).hexdigest()},
    }
    (FOLDER / "card.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")
    print(card["quality"])  # a script run by hand


if __name__ == "__main__":
    main()
