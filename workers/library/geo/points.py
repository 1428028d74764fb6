"""Positions as they come, read into numbers, and the distance between two."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from workers.errors import BadInput

MOST_POINTS = 5000
"""With so many the answer, track included, stays below the limit of a record."""
EARTH_KM = 6371.0088
"""Mean radius of the WGS 84 ellipsoid, (2a + b) / 3, by Moritz, Geodetic Reference System 1980 (IUGG)."""
_LATEST = 1e11
_MILLIS = ": it is too large; are these milliseconds?"


class Point(NamedTuple):
    """`t` in seconds (any epoch), `lat` and `lon` in degrees (WGS 84), `speed` in km/h, `accuracy` in m."""

    place: int
    vehicle: str
    t: float
    lat: float
    lon: float
    speed: float | None = None
    heading: float | None = None
    accuracy: float | None = None

    @property
    def row(self) -> dict[str, Any]:
        """As it is answered; what was not given is left out."""
        known = self._asdict()
        del known["place"]
        return {name: value for name, value in known.items() if value is not None and value != ""}


class Leg(NamedTuple):
    """The way between two points of one vehicle that follow each other; `end` is the time of the second."""

    end: float
    seconds: float
    km: float


def distance_km(a: Point, b: Point) -> float:
    """Great circle on a sphere of EARTH_KM by the haversine formula (Sinnott, Sky and Telescope 68, 1984)."""
    lat1, lat2 = math.radians(a.lat), math.radians(b.lat)
    half = math.sin((lat2 - lat1) / 2) ** 2
    half += math.cos(lat1) * math.cos(lat2) * math.sin(math.radians(b.lon - a.lon) / 2) ** 2
    return 2 * EARTH_KM * math.asin(min(1.0, math.sqrt(half)))


def read_points(rows: Sequence[Any]) -> tuple[list[Point], dict[int, str]]:
    """The points in their order, and the index of each that is none with what is wrong with it.

    Raises:
        BadInput: none at all, or more than MOST_POINTS.
    """
    if not rows:
        raise BadInput("inputs.points is empty; give a list of {t, lat, lon}")
    if len(rows) > MOST_POINTS:
        raise BadInput(
            f"inputs.points has {len(rows)} points; at most {MOST_POINTS} are read: send it in parts"
        )
    points, faults = [], {}
    for index, row in enumerate(rows):
        point = _point(index, row)
        if isinstance(point, str):
            faults[index] = point
        else:
            points.append(point)
    return points, faults


def _point(index: int, row: Any) -> Point | str:
    """A point, or what is wrong with it."""
    if not isinstance(row, Mapping):
        return "no object"
    t = _seconds(row.get("t"))
    lat, lon = _number(row.get("lat")), _number(row.get("lon"))
    if t is None:
        return "t is no time in seconds, or ISO 8601" + (_MILLIS if _is_large(row.get("t")) else "")
    if lat is None or lon is None:
        return "lat is no number" if lat is None else "lon is no number"
    name = next((row[key] for key in ("id", "vehicle") if row.get(key) is not None), "")
    if not isinstance(name, str | int) or len(str(name)) > 100:
        return "id is no short text"
    more = [_number(row.get(key)) for key in ("speed", "heading", "accuracy")]
    return Point(index, str(name), t, lat, lon, *more)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LATEST:
        return None
    return float(value)


def _is_large(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > _LATEST


def _seconds(value: Any) -> float | None:
    """Seconds, or ISO 8601 text (UTC where it names no zone)."""
    if not isinstance(value, str):
        return _number(value)
    try:
        when = datetime.fromisoformat(value[:40])
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
