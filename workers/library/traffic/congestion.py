"""`traffic/congestion`: how congested segments are, and all of them together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta

from workers.backends.function import capability
from workers.errors import BadInput
from workers.library.levels import LEVELS, SHARES, level_of
from workers.library.traffic.readings import Free, Reading, Series, free_flow, samples_of

Level = Literal["free", "moderate", "heavy", "jam"]
Share = Annotated[float, Meta(gt=0, lt=1)]
_OFFER: dict[str, Any] = {
    "model": "rules",
    "cacheable": True,
    "licence": "Apache-2.0",
    "source": "levels of service of urban streets by share of free-flow speed, Highway Capacity Manual 2010",
    "quality": "by definition: levels are thresholds on measured shares; none are estimated",
}


@capability("local/traffic/congestion", **_OFFER)
@capability("cloud/traffic/congestion", **_OFFER)
def congestion(
    readings: list[Reading] | None = None,
    history: Series | dict[str, Series] | None = None,
    points: list[Any] | None = None,
    step_min: Annotated[float, Meta(gt=0, le=1440)] = 1.0,
    end: float | None = None,
    free_flow_kmh: Free | dict[str, Free] | None = None,
    recent_min: Annotated[float, Meta(gt=0, le=1440)] = 5.0,
    lengths_km: dict[str, Annotated[float, Meta(gt=0, le=1000)]] | None = None,
    previous: dict[str, Level] | None = None,
    hysteresis: Annotated[float, Meta(ge=0, le=0.15)] = 0.03,
    bounds: tuple[Share, Share, Share] = SHARES,
) -> dict[str, Any]:
    """Congestion of each segment and of all: free, moderate, heavy or jam, by share of free-flow speed."""
    if not bounds[0] > bounds[1] > bounds[2]:
        raise BadInput("bounds are shares of free-flow speed that fall: of moderate, heavy and jam")
    samples = samples_of(readings, history, points, step_min=step_min, end=end)
    free = free_flow(samples, free_flow_kmh)
    latest = max(sample.t for its in samples.values() for sample in its)
    rows = []
    for name, its in samples.items():
        speeds = [kmh for t, kmh in its if t > latest - recent_min * 60]
        if speeds:
            speed = sum(speeds) / len(speeds)
            rows.append(
                {
                    "segment": name,
                    "level": held(speed / free[name], (previous or {}).get(name), hysteresis, bounds),
                    "flow_ratio": round(speed / free[name], 4),
                    "recent_speed_kmh": round(speed, 2),
                    "free_flow_kmh": round(free[name], 2),
                }
            )
    seen = {row["segment"] for row in rows}
    return _together(rows, lengths_km or {}, bounds) | {
        "segments": rows,
        "missing": sorted(samples.keys() - seen),
    }


def held(share: float, before: str | None, hysteresis: float, bounds: tuple[float, ...] = SHARES) -> str:
    """The level of `share`, where that before is left only once `share` is `hysteresis` beyond its bound."""
    now = level_of(share, bounds)
    if before is None or now == before:
        return now
    # Seen from where it stood: worse by less than the margin, or better by less than it, is no change.
    worse = LEVELS.index(now) > LEVELS.index(before)
    damped = level_of(share + hysteresis if worse else share - hysteresis, bounds)
    moved = (
        LEVELS.index(damped) > LEVELS.index(before) if worse else LEVELS.index(damped) < LEVELS.index(before)
    )
    return damped if moved else before


def _together(
    rows: list[dict[str, Any]], lengths: Mapping[str, float], bounds: tuple[float, ...]
) -> dict[str, Any]:
    """All as one road: its length over the time it takes (segments of unknown length count 1 km)."""
    km = [lengths.get(row["segment"], 1.0) for row in rows]
    # A segment that stands still would take for ever; 1 km/h would be free flow where all but nothing moves.
    slowest = [max(min(1.0, row["free_flow_kmh"] / 50), row["recent_speed_kmh"]) for row in rows]
    hours = sum(each / speed for each, speed in zip(km, slowest, strict=True))
    at_best = sum(each / row["free_flow_kmh"] for each, row in zip(km, rows, strict=True))
    share = at_best / hours
    return {
        "level": level_of(share, bounds),
        "flow_ratio": round(share, 4),
        "recent_speed_kmh": round(sum(km) / hours, 2),
        "free_flow_kmh": round(sum(km) / at_best, 2),
    }
