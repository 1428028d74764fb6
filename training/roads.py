"""A simulated network of roads: no real speeds were to be had under a free licence.

Segments of 40 to 110 km/h free-flow speed lie in chains whose ends join others. Demand follows a day with two
peaks and a flatter weekend, different for each segment, with the day's and the weather's own moods; speed
falls with demand over capacity as in the curve of the Bureau of Public Roads. Incidents take speed away for a
quarter to one and a half hours, and what they hold up grows back along the chain, ten minutes a segment.
Detectors add noise and fall silent.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[Any]
DAY = 288
"""Steps of five minutes."""


class Roads(NamedTuple):
    """`true` and `seen` [segments, steps] are shares of free-flow speed, NaN where a detector was silent;
    `down[i]` are the segments that follow on i."""

    true: Floats
    seen: Floats
    free_kmh: Floats
    down: list[list[int]]


def simulate(seed: int, days: int = 28, chains: int = 6, length: int = 6) -> Roads:
    rng = np.random.default_rng(seed)
    count, steps = chains * length, days * DAY
    down = _graph(rng, chains, length)
    base = 1 / (1 + 0.5 * _demand(rng, count, days) ** 6)
    true = np.clip(base * (1 - _held_up(rng, down, steps)), 0.03, 1.1)
    wobble = _slow_noise(rng, (count, steps), 0.9, 0.02)
    seen = true * (1 + wobble + rng.normal(0, 0.03, true.shape))
    silent = rng.random(seen.shape) < 0.04
    for _ in range(count * days // 4):
        place, begin = rng.integers(count), rng.integers(steps)
        silent[place, begin : begin + rng.integers(3, 24)] = True
    return Roads(true * (1 + wobble), np.where(silent, np.nan, seen), rng.uniform(40, 110, count), down)


def _graph(rng: np.random.Generator, chains: int, length: int) -> list[list[int]]:
    down: list[list[int]] = []
    for chain in range(chains):
        for place in range(length):
            own = chain * length + place
            if place + 1 < length:
                down.append([own + 1])
            else:
                other = (chain + int(rng.integers(1, chains))) % chains
                down.append([other * length + int(rng.integers(length // 2))])
    return down


def _demand(rng: np.random.Generator, count: int, days: int) -> Floats:
    """Over capacity, [segments, steps]."""
    hours = np.arange(DAY) / 12
    peaks = [
        np.exp(-(((hours - rng.normal(at, 0.4, (count, 1))) / rng.uniform(1.0, 1.8, (count, 1))) ** 2))
        for at in (8, 17.5)
    ]
    noon = np.exp(-(((hours - 14) / 4.0) ** 2))
    height = rng.uniform(0.5, 1.15, (2, count, 1))
    workday = 0.25 + height[0] * peaks[0] + height[1] * peaks[1] + 0.25 * noon
    weekend = 0.2 + rng.uniform(0.3, 0.8, (count, 1)) * noon
    found = []
    for day in range(days):
        mood = rng.normal(1, 0.05) * rng.normal(1, 0.06, (count, 1))
        found.append((weekend if day % 7 >= 5 else workday) * mood)
    flat = np.concatenate(found, axis=1)
    return np.clip(flat * (1 + _slow_noise(rng, flat.shape, 0.97, 0.02)), 0, 1.6)


def _held_up(rng: np.random.Generator, down: list[list[int]], steps: int) -> Floats:
    """The share of speed that incidents take away, [segments, steps]."""
    count = len(down)
    fresh = np.zeros((count, steps))
    for _ in range(rng.poisson(count * steps / DAY * 0.35)):
        place, begin, lasts = rng.integers(count), rng.integers(steps), rng.integers(3, 18)
        fresh[place, begin : begin + lasts] = rng.uniform(0.4, 0.85)
    held = np.zeros((count, steps))
    for step in range(2, steps):
        behind = np.array([max(held[other, step - 2] for other in after) for after in down])
        held[:, step] = np.maximum.reduce([fresh[:, step], 0.8 * held[:, step - 1], 0.75 * behind])
    return held


def _slow_noise(rng: np.random.Generator, shape: tuple[int, ...], keeps: float, size: float) -> Floats:
    """Autoregressive noise of order one along the last axis."""
    fresh = rng.normal(0, size, shape)
    found = np.zeros(shape)
    for step in range(1, shape[-1]):
        found[..., step] = keeps * found[..., step - 1] + fresh[..., step]
    return found
