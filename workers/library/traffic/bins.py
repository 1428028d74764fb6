"""Speeds in steps of five minutes, with gaps filled, beside those of the neighbours and of other days."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from workers.library.traffic.model import HORIZONS_MIN, PAST, STEP_MIN, Floats, features
from workers.library.traffic.readings import Sample

_STEP_S = STEP_MIN * 60
_DAY = 86_400 // _STEP_S
_MOST_DAYS = 60
Binned = dict[int, float]
"""Mean share of free-flow speed by step since the epoch."""


def binned(samples: Iterable[Sample], free: float) -> Binned:
    sums: dict[int, tuple[float, int]] = {}
    for t, kmh in samples:
        step = math.floor(t / _STEP_S)
        total, count = sums.get(step, (0.0, 0))
        sums[step] = (total + kmh / free, count + 1)
    return {step: total / count for step, (total, count) in sums.items()}


def recent(values: Binned, now: int) -> tuple[Floats, float] | None:
    """The last PAST steps up to `now`, a gap filled with the value before it, and the share that was filled;
    None where there is no value at all."""
    raw = [values.get(step) for step in range(now - PAST + 1, now + 1)]
    known = [value for value in raw if value is not None]
    if not known:
        return None
    filled, last = [], known[0]
    for value in raw:
        last = last if value is None else value
        filled.append(last)
    return np.array(filled, np.float32), 1 - len(known) / PAST


def usual(values: Binned, now: int) -> Floats | None:
    """What is usual now and at the horizons: the mean of that time on earlier days, of the same kind of day
    (Monday to Friday, or the weekend) where there is such a day; None where a time has no value."""
    times = [now, *(now + minutes // STEP_MIN for minutes in HORIZONS_MIN)]
    days = range(1, 1 + min(_MOST_DAYS, max(0, (now - min(values, default=now)) // _DAY + 1)))
    found = []
    for time in times:
        held = [
            (_weekend(time) == _weekend(time - day * _DAY), values.get(time - day * _DAY)) for day in days
        ]
        known = [(alike, value) for alike, value in held if value is not None]
        alike = [value for same, value in known if same] or [value for _, value in known]
        if not alike:
            return None
        found.append(sum(alike) / len(alike))
    return np.array(found, np.float32)


def from_profile(shares: Sequence[float], now: int) -> Floats:
    """What is usual now and at the horizons, from means over equal parts of a day (UTC)."""
    times = [now, *(now + minutes // STEP_MIN for minutes in HORIZONS_MIN)]
    return np.array([shares[int(time % _DAY * len(shares) / _DAY)] for time in times], np.float32)


def _weekend(step: int) -> bool:
    # The epoch was a Thursday.
    return (step // _DAY + 3) % 7 >= 5


class Graph:
    """Which segments of `known` follow on which; others are left out."""

    def __init__(self, adjacency: Mapping[str, Sequence[str]], known: Collection[str]) -> None:
        self.after: dict[str, list[str]] = {}
        self.before: dict[str, list[str]] = {}
        for name, nexts in adjacency.items():
            for other in dict.fromkeys(nexts):
                if name != other and name in known and other in known:
                    self.after.setdefault(name, []).append(other)
                    self.before.setdefault(other, []).append(name)


def row_of(
    name: str, past: Mapping[str, tuple[Floats, float]], graph: Graph, profile: Floats | None
) -> Floats:
    """The model's inputs for a segment."""
    own, missing = past[name]
    after = [past[other][0] for other in graph.after.get(name, ())]
    before = [past[other][0] for other in graph.before.get(name, ())]
    return features(
        own[None],
        np.min(after, axis=0)[None] if after else None,
        np.mean(before, axis=0)[None] if before else None,
        None if profile is None else profile[None],
        np.array([missing], np.float32),
    )
