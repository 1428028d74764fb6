"""`traffic/forecast`: the speeds of road segments up to an hour ahead, with intervals."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from workers.backends.function import capability
from workers.library.levels import level_of
from workers.library.traffic.bins import Graph, binned, from_profile, recent, row_of, usual
from workers.library.traffic.model import FOLDER, HORIZONS_MIN, STEP_MIN, Floats, model
from workers.library.traffic.readings import Free, Reading, Samples, Series, Speed, free_flow, samples_of
from workers.models.cards import read_card

_CARD = read_card(FOLDER)
_OFFER: dict[str, Any] = {
    "model": _CARD["name"],
    "version": _CARD["version"],
    "cacheable": True,
    "licence": _CARD["licence"],
    "source": _CARD["source"],
    "quality": _CARD["quality"],
    "load": model,
}
Minutes = Annotated[int, Meta(ge=1, le=60)]
Profile = Annotated[list[Speed], Meta(min_length=1, max_length=288)]


@capability("local/traffic/forecast", **_OFFER)
@capability("cloud/traffic/forecast", **_OFFER)
def forecast(
    readings: list[Reading] | None = None,
    history: Series | dict[str, Series] | None = None,
    points: list[Any] | None = None,
    step_min: Annotated[float, Meta(gt=0, le=1440)] = 1.0,
    end: float | None = None,
    adjacency: dict[str, list[str]] | None = None,
    free_flow_kmh: Free | dict[str, Free] | None = None,
    profile: dict[str, Profile] | None = None,
    minutes: Annotated[list[Minutes], Meta(min_length=1, max_length=60)] | None = None,
    horizon_min: Minutes | None = None,
) -> tuple[dict[str, Any], float]:
    """Speeds of road segments up to an hour ahead, with 80 % intervals, from recent and usual speeds.

    Confidence: 1 less the mean width of the intervals as a share of free-flow speed.
    """
    samples = samples_of(readings, history, points, step_min=step_min, end=end)
    free = free_flow(samples, free_flow_kmh)
    steps = {name: binned(its, free[name]) for name, its in samples.items() if its}
    now = max(step for its in steps.values() for step in its)
    past = {name: seen for name, its in steps.items() if (seen := recent(its, now)) is not None}
    graph = Graph(adjacency or {}, past)
    rows, known = [], 0
    for name in past:
        of_day = usual(steps[name], now)
        if profile is not None and name in profile:
            of_day = from_profile([kmh / free[name] for kmh in profile[name]], now)
        known += of_day is not None
        rows.append(row_of(name, past, graph, of_day))
    said = model()(np.concatenate(rows))
    wanted = sorted(set(minutes or ())) or _until(horizon_min)
    ahead = [
        row
        for name, its in zip(past, said, strict=True)
        for row in _rows(name, past[name][0], its, free, wanted)
    ]
    widths = [(row["high_kmh"] - row["low_kmh"]) / free[row["segment"]] for row in ahead]
    output = {
        "forecast": ahead,
        "interval": 0.8,
        "method": f"{_CARD['name']} {_CARD['version']}",
        "observed_minutes": _observed(samples),
        "with_usual_speeds": known,
        "free_flow_from": "readings" if free_flow_kmh is None else "given",
        "missing": sorted(samples.keys() - past.keys()),
    }
    return output, round(min(1.0, max(0.0, 1.0 - sum(widths) / len(widths))), 4)


def _until(horizon: int | None) -> list[int]:
    """Every five minutes up to `horizon`, and that; without one the model's own."""
    if horizon is None:
        return list(HORIZONS_MIN)
    return sorted({*range(STEP_MIN, horizon, STEP_MIN), horizon})


def _rows(
    name: str, past: Floats, said: Floats, free: dict[str, float], wanted: list[int]
) -> list[dict[str, Any]]:
    """Between the model's own horizons, and from now to the first, in a straight line."""
    times = [0, *HORIZONS_MIN]
    now = past[-1].clip(0.0, None)
    lines = [np.interp(wanted, times, [now, *said[:, quantile]]) for quantile in range(3)]
    rows = []
    for minute, low, middle, high in zip(wanted, *lines, strict=True):
        row: dict[str, Any] = {"segment": name, "minute": minute, "level": level_of(float(middle))}
        for key, share in (("speed_kmh", middle), ("low_kmh", low), ("high_kmh", high)):
            row[key] = round(float(share) * free[name], 2)
        rows.append(row)
    return rows


def _observed(samples: Samples) -> int:
    """Minutes in which something was measured, anywhere."""
    return len({math.floor(sample.t / 60) for its in samples.values() for sample in its})
