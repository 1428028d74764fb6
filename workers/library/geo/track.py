"""Which points of a track may be believed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from workers.library.geo.points import Leg, Point, distance_km

NULL_ISLAND_DEG = 1e-3
"""So near to latitude 0 and longitude 0 no receiver is; one that knows nothing says so."""
SLACK_KM = 0.03
"""Two positions of one place may differ by so much, whatever the time between them."""
_MOST_RUNS = 12


class Bounds(NamedTuple):
    """What is believable. Times in seconds; `now`, `max_age_s`: None where age does not matter."""

    max_speed_kmh: float = 200.0
    jump_km: float = 1.0
    max_gap_s: float = 300.0
    frozen_s: float = 300.0
    max_accuracy_m: float = 100.0
    now: float | None = None
    max_age_s: float | None = None
    max_future_s: float = 60.0


@dataclass(slots=True)
class Checked:
    """`bad` and `doubtful`: reasons by index of the point; `tracks`: what stays, by vehicle."""

    bad: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    doubtful: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    tracks: dict[str, list[Point]] = field(default_factory=dict)

    def legs(self) -> Iterator[Leg]:
        for track in self.tracks.values():
            for a, b in pairwise(track):
                yield Leg(b.t, b.t - a.t, distance_km(a, b))


def check(points: Sequence[Point], bounds: Bounds) -> Checked:
    """Each point by itself, then against the others of its vehicle, in the order given."""
    found = Checked()
    vehicles: dict[str, list[Point]] = {}
    for point in points:
        reasons = list(_own_faults(point, bounds))
        if reasons:
            found.bad[point.place] = reasons
        else:
            vehicles.setdefault(point.vehicle, []).append(point)
    for vehicle, its in vehicles.items():
        found.tracks[vehicle] = _in_motion(_in_order(its, found), bounds, found)
        _doubt(found.tracks[vehicle], bounds, found)
    return found


def in_time(points: Sequence[Point]) -> list[Point]:
    """Sorted by what they say, so that the order they came in does not matter."""
    return sorted(points, key=lambda p: (p.vehicle, p.t, p.lat, p.lon, repr(p[5:])))


def _own_faults(point: Point, bounds: Bounds) -> Iterator[str]:
    if not (-90 <= point.lat <= 90 and -180 <= point.lon <= 180):
        yield "out_of_range"
    elif abs(point.lat) < NULL_ISLAND_DEG and abs(point.lon) < NULL_ISLAND_DEG:
        yield "null_island"
    if point.accuracy is not None and not 0 <= point.accuracy <= bounds.max_accuracy_m:
        yield "inaccurate"
    if point.speed is not None and not 0 <= point.speed <= bounds.max_speed_kmh:
        yield "impossible_speed"
    if point.heading is not None and not 0 <= point.heading <= 360:
        yield "heading_out_of_range"
    if bounds.now is not None and point.t > bounds.now + bounds.max_future_s:
        yield "future"
    if bounds.now is not None and bounds.max_age_s is not None and point.t < bounds.now - bounds.max_age_s:
        yield "stale"


def _in_order(points: Sequence[Point], found: Checked) -> list[Point]:
    """Without repetitions and what is earlier than most before it.

    Where one point has a clock far ahead, it is that one which is out of order, and not all after it: the
    longest part of the points whose times do not fall stays (patience sorting).
    """
    kept = set(_longest_rising([point.t for point in points]))
    stays: list[Point] = []
    for place, point in enumerate(points):
        if place not in kept:
            found.bad[point.place].append("out_of_order")
        elif stays and point[1:5] == stays[-1][1:5]:
            found.bad[point.place].append("duplicate")
        else:
            stays.append(point)
    return stays


def _longest_rising(values: Sequence[float]) -> Iterator[int]:
    """The places of the longest part of `values` that never falls; of several such parts that of the earliest
    places, so that of two exchanged points the late one is out of order."""
    ends: list[float] = []
    places: list[int] = []
    after: dict[int, int] = {}
    for place in range(len(values) - 1, -1, -1):
        at = bisect_right(ends, -values[place])
        ends[at : at + 1] = [-values[place]]
        places[at : at + 1] = [place]
        after[place] = places[at - 1] if at else -1
    place = places[-1] if places else -1
    while place >= 0:
        yield place
        place = after[place]


def _in_motion(points: Sequence[Point], bounds: Bounds, found: Checked) -> list[Point]:
    """The longest run of points that one vehicle can have been at, one after the other.

    A single first point far away must not make jumps of all that follow, so runs are built side by side.
    """
    runs: list[list[Point]] = []
    dropped: list[Point] = []
    for point in points:
        run = next((run for run in runs if _reachable(run[-1], point, bounds)), None)
        if run is None:
            if len(runs) == _MOST_RUNS:
                dropped += runs.pop()
            runs.append([point])
        else:
            run.append(point)
            runs.sort(key=len, reverse=True)
    if not runs:
        return []
    kept, *others = runs
    times = [point.t for point in kept]
    for point in (*dropped, *(each for run in others for each in run)):
        near = kept[min(bisect_left(times, point.t), len(kept) - 1)]
        if distance_km(point, near) >= bounds.jump_km:
            reason = "jump"
        else:
            reason = "same_time" if near.t == point.t else "impossible_speed"
        found.bad[point.place].append(reason)
    return kept


def _reachable(a: Point, b: Point, bounds: Bounds) -> bool:
    hours = (b.t - a.t) / 3600
    return hours > 0 and distance_km(a, b) <= bounds.max_speed_kmh * hours + SLACK_KM


def _doubt(track: Sequence[Point], bounds: Bounds, found: Checked) -> None:
    """Gaps, and positions that stand still to the last digit for long; these points stay."""
    since = 0
    for place, point in enumerate(track):
        if place and point.t - track[place - 1].t > bounds.max_gap_s:
            found.doubtful[point.place].append("gap")
        if (point.lat, point.lon) != (track[since].lat, track[since].lon):
            since = place
        if place - since >= 2 and point.t - track[since].t >= bounds.frozen_s:
            found.doubtful[point.place].append("frozen")
