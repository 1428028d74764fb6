"""Speeds of road segments from the forms in which they come."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from workers.errors import BadInput
from workers.library.geo.points import Leg, read_points
from workers.library.geo.track import Bounds, check

MOST_READINGS = 50_000
MOST_SEGMENTS = 500
ONE = "road"
"""The segment of a request that names none."""

Speed = Annotated[float, Meta(ge=0, le=500)]
Free = Annotated[float, Meta(ge=1, le=300)]
Series = list[Speed | None]


class Reading(msgspec.Struct, frozen=True, rename={"speed": "speed_kmh"}):
    """What was measured on a segment at `t`, seconds; no speed: the detector said nothing."""

    t: Annotated[float, Meta(ge=-1e11, le=1e11)]
    speed: Speed | None = None
    segment: Annotated[str, Meta(max_length=100)] = ONE


class Sample(NamedTuple):
    t: float
    kmh: float


Samples = dict[str, list[Sample]]
"""By segment, in the order of time; a segment may have none."""


def samples_of(
    readings: Sequence[Reading] | None,
    history: Series | Mapping[str, Series] | None,
    points: Sequence[Any] | None,
    *,
    step_min: float,
    end: float | None,
) -> Samples:
    """The speeds of the first of these that is given; `history` ends at `end`, one value each `step_min`.

    Raises:
        BadInput: none is given, or no speed is in it, or too many.
    """
    if readings is not None:
        found = _of_readings(readings)
    elif history is not None:
        series = history if isinstance(history, Mapping) else {ONE: history}
        found = {name: _of_series(values, step_min * 60.0, end or 0.0) for name, values in series.items()}
    elif points is not None:
        read, _faults = read_points(points)
        found = {ONE: _of_legs(list(check(read, Bounds()).legs()))}
    else:
        raise BadInput("give inputs.readings, inputs.history or inputs.points")
    if len(found) > MOST_SEGMENTS or sum(map(len, found.values())) > MOST_READINGS:
        raise BadInput(f"more than {MOST_SEGMENTS} segments or {MOST_READINGS} speeds: send them in parts")
    if not any(found.values()):
        what = "two good points of one vehicle are needed" if points is not None else "none has a speed"
        raise BadInput(f"there is no speed in the inputs: {what}")
    return found


def _of_readings(readings: Sequence[Reading]) -> Samples:
    found: Samples = {}
    for reading in readings:
        its = found.setdefault(reading.segment, [])
        if reading.speed is not None:
            its.append(Sample(reading.t, reading.speed))
    return {name: sorted(its) for name, its in found.items()}


def _of_series(values: Series, step_s: float, end: float) -> list[Sample]:
    last = len(values) - 1
    return [
        Sample(end - (last - place) * step_s, value)
        for place, value in enumerate(values)
        if value is not None
    ]


def _of_legs(legs: Sequence[Leg]) -> list[Sample]:
    """One speed a minute: all kilometres over all hours of the legs that end in it."""
    minutes = groupby(sorted(legs), key=lambda leg: math.floor(leg.end / 60))
    found = []
    for minute, its in minutes:
        some = list(its)
        hours = sum(leg.seconds for leg in some) / 3600
        found.append(Sample(minute * 60.0, min(500.0, sum(leg.km for leg in some) / hours)))
    return found


def free_flow(samples: Samples, given: float | Mapping[str, float] | None) -> dict[str, float]:
    """Free-flow speed by segment, km/h: as given, else the 95th percentile of its readings (1 at least)."""
    found = {}
    for name, its in samples.items():
        known = given.get(name) if isinstance(given, Mapping) else given
        if known is None and its:
            speeds = sorted(sample.kmh for sample in its)
            known = max(1.0, speeds[min(len(speeds) - 1, math.ceil(0.95 * len(speeds)) - 1)])
        if known is not None:
            found[name] = float(known)
    return found
