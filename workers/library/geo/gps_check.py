"""`local/geo/gps_check`: which points of a track may be believed, and the track without the others."""

from __future__ import annotations

import time
from collections import Counter
from typing import Annotated, Any, Literal

from msgspec import Meta

from workers.backends.function import capability
from workers.library.geo.points import read_points
from workers.library.geo.track import Bounds, Checked, check, in_time
from workers.library.levels import level_of

Above = Annotated[float, Meta(gt=0, le=1e9)]
QUALITY = (
    "every one of 120 faults put into a recorded track found, no other point dropped "
    "(tests/workers/library/geo/test_gps_check.py)"
)


@capability(
    "local/geo/gps_check",
    model="rules",
    licence="Apache-2.0",
    source="rules of this project; distances by haversine on the WGS 84 mean radius",
    quality=QUALITY,
)
def gps_check(
    points: list[Any],
    order: Literal["flag", "sort"] = "flag",
    max_speed_kmh: Above = 200.0,
    jump_km: Above = 1.0,
    max_gap_s: Above = 300.0,
    frozen_s: Above = 300.0,
    max_accuracy_m: Above = 100.0,
    now: float | None = None,
    max_age_s: Above | None = None,
    max_future_s: Annotated[float, Meta(ge=0)] = 60.0,
    free_flow_kmh: Annotated[float, Meta(ge=1, le=300)] | None = None,
    track: bool = True,
) -> dict[str, Any]:
    """A GPS track checked: verdicts with reasons, the clean track, its length and mean speed."""
    if now is None and max_age_s is not None:
        now = time.time()
    bounds = Bounds(max_speed_kmh, jump_km, max_gap_s, frozen_s, max_accuracy_m, now, max_age_s, max_future_s)
    read, faults = read_points(points)
    found = check(in_time(read) if order == "sort" else read, bounds)
    for index in faults:
        found.bad[index].append("malformed")
    answer = _summary(found, len(points)) | {"findings": _findings(found, faults)}
    if free_flow_kmh is not None and "mean_speed_kmh" in answer:
        answer["level"] = level_of(answer["mean_speed_kmh"] / free_flow_kmh)
    if track:
        answer["track"] = [point.row for its in found.tracks.values() for point in its]
    return answer


def _findings(found: Checked, faults: dict[int, str]) -> list[dict[str, Any]]:
    """One for each point that is not good, in the order given."""
    rows = []
    for index in sorted(found.bad.keys() | found.doubtful.keys()):
        bad = found.bad.get(index)
        row = {
            "index": index,
            "verdict": "bad" if bad else "doubtful",
            "reasons": [*(bad or ()), *found.doubtful.get(index, ())],
        }
        rows.append(row | {"told": faults[index]} if index in faults else row)
    return rows


def _summary(found: Checked, count: int) -> dict[str, Any]:
    legs = list(found.legs())
    km, seconds = sum(leg.km for leg in legs), sum(leg.seconds for leg in legs)
    answer: dict[str, Any] = {
        "points": count,
        "bad": len(found.bad),
        "doubtful": len(found.doubtful),
        "valid_share": round(1 - len(found.bad) / count, 4),
        "reasons": dict(
            Counter(r for some in (found.bad, found.doubtful) for rs in some.values() for r in rs)
        ),
        "length_km": round(km, 3),
        "seconds": round(seconds, 3),
    }
    if seconds:
        answer["mean_speed_kmh"] = round(km / seconds * 3600, 2)
    return answer
