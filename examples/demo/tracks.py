"""GPS tracks: reading and checking points, speeds between them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MAX_POINTS = 10_000
MAX_SPEED_KMH = 200.0
_LARGEST = 1e11
_EARTH_KM = 6371.0088


@dataclass(frozen=True)
class Point:
    """`t` in seconds (any epoch), `lat` and `lon` in degrees (WGS 84)."""

    vehicle: str
    t: float
    lat: float
    lon: float


@dataclass(frozen=True)
class Leg:
    """The way between two good points of one vehicle; `end` is the time of the second."""

    end: float
    seconds: float
    km: float

    @property
    def kmh(self) -> float:
        return self.km / self.seconds * 3600


@dataclass(frozen=True)
class Checked:
    """`flags[i]` are the faults of point i (none: it is good); `legs` lie between good points."""

    flags: list[list[str]]
    legs: list[Leg]


def distance_km(a: Point, b: Point) -> float:
    """Great circle by the haversine formula on a sphere of mean radius 6371.0088 km."""
    lat1, lat2 = math.radians(a.lat), math.radians(b.lat)
    half = math.sin((lat2 - lat1) / 2) ** 2
    half += math.cos(lat1) * math.cos(lat2) * math.sin(math.radians(b.lon - a.lon) / 2) ** 2
    return 2 * _EARTH_KM * math.asin(min(1.0, math.sqrt(half)))


def _coordinate(row: Mapping[str, Any], key: str, place: int) -> float:
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST:
        wanted = f"a number within {_LARGEST:g} (t in seconds, lat and lon in degrees)"
        raise ValueError(f"inputs.points[{place}].{key} must be {wanted}")
    return float(value)


def points_of(inputs: Mapping[str, Any]) -> list[Point]:
    """`inputs.points`: [{t, lat, lon, vehicle?}]; ValueError names the first bad row and field."""
    rows = inputs.get("points")
    if not isinstance(rows, list | tuple) or not rows:
        raise ValueError("inputs.points must be a list of {t, lat, lon} with at least one point")
    if len(rows) > MAX_POINTS:
        raise ValueError(
            f"inputs.points has {len(rows)} points; at most {MAX_POINTS} are read: send it in parts"
        )
    points = []
    for place, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise ValueError(f"inputs.points[{place}] must be an object, got {type(row).__name__}")
        t, lat, lon = (_coordinate(row, key, place) for key in ("t", "lat", "lon"))
        points.append(Point(str(row.get("vehicle", "")), t, lat, lon))
    return points


def _faults(point: Point, last: Point | None) -> list[str]:
    if not (-90 <= point.lat <= 90 and -180 <= point.lon <= 180):
        return ["out_of_range"]
    if last is None:
        return []
    if (point.t, point.lat, point.lon) == (last.t, last.lat, last.lon):
        return ["duplicate"]
    if point.t < last.t:
        return ["out_of_order"]
    km, hours = distance_km(last, point), (point.t - last.t) / 3600
    return ["jump"] if km > MAX_SPEED_KMH * hours else []


def check(points: list[Point]) -> Checked:
    """Each point against the last good one of its vehicle; a bad point is never the measure of the next."""
    last: dict[str, Point] = {}
    flags, legs = [], []
    for point in points:
        before = last.get(point.vehicle)
        faults = _faults(point, before)
        flags.append(faults)
        if faults:
            continue
        if before is not None and point.t > before.t:
            legs.append(Leg(point.t, point.t - before.t, distance_km(before, point)))
        last[point.vehicle] = point
    return Checked(flags, legs)


def mean_kmh(legs: list[Leg]) -> float | None:
    """All kilometres over all hours; None without a leg."""
    seconds = sum(leg.seconds for leg in legs)
    return sum(leg.km for leg in legs) / seconds * 3600 if seconds else None


def per_minute_kmh(legs: list[Leg]) -> list[float]:
    """Mean speed of each minute from the first leg's end on; gaps repeat the last value (60 at most)."""
    if not legs:
        return []
    start = min(leg.end for leg in legs)
    minutes: dict[int, list[Leg]] = {}
    for leg in legs:
        minutes.setdefault(int((leg.end - start) // 60), []).append(leg)
    series: list[float] = []
    last = -1
    for minute in sorted(minutes):
        # A clock fault can put one point years ahead: the series must not grow with the gap.
        series += series[-1:] * min(minute - last - 1, 60)
        series.append(mean_kmh(minutes[minute]) or 0.0)
        last = minute
    return series
