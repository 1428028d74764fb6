"""`local/geo/gps_check` on a recorded track, and its laws."""

from __future__ import annotations

import csv
import math
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.backends import Answer, Row
from workers.backends.function import backends_of
from workers.library.geo.gps_check import QUALITY, gps_check
from workers.library.geo.points import MOST_POINTS

DATA = Path(__file__).parents[3] / "data"
NORTH = 1 / 111.19493  # degrees of latitude in a kilometre on the sphere used
(BACKEND,) = backends_of(gps_check)


def recorded() -> list[dict[str, Any]]:
    with (DATA / "track_saone.csv").open(encoding="utf-8") as file:
        return [{"t": r["t"], "lat": float(r["lat"]), "lon": float(r["lon"])} for r in csv.DictReader(file)]


def asked(points: Any, **params: Any) -> Answer:
    (answer,) = BACKEND.infer([Row({"points": points}, params)])
    return answer


def checked(points: Any, **params: Any) -> Any:
    answer = asked(points, **params)
    assert answer.error is None, answer.error
    return answer.output


def drive(kmh: float = 30, minutes: int = 5, **more: Any) -> list[dict[str, Any]]:
    return [{"t": 60 * k, "lat": 40 + kmh / 60 * k * NORTH, "lon": 10, **more} for k in range(minutes + 1)]


def bad(output: Any) -> dict[int, list[str]]:
    return {row["index"]: row["reasons"] for row in output["findings"] if row["verdict"] == "bad"}


def test_a_recorded_track_is_believed_and_a_pause_in_it_told() -> None:
    output = checked(recorded())
    assert bad(output) == {}
    assert (output["points"], output["bad"], output["doubtful"]) == (302, 0, 0)
    assert output["length_km"] == pytest.approx(18.144)
    assert output["mean_speed_kmh"] == pytest.approx(6.38)
    assert len(output["track"]) == 302
    paused = checked([*recorded()[:100], *recorded()[115:]])
    assert (paused["bad"], paused["doubtful"], paused["reasons"]) == (0, 1, {"gap": 1})


def with_faults(seed: int) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """The recorded track with one fault of each kind at places of chance; and which reason is due where."""
    rng = random.Random(seed)
    good = recorded()
    kinds = ("out_of_range", "null_island", "jump", "duplicate", "out_of_order", "malformed")
    where = dict(zip(rng.sample(range(5, len(good) - 1), len(kinds)), kinds, strict=True))
    points, due = [], {}
    for place, point in enumerate(good):
        kind = where.get(place)
        if kind is not None:
            due[len(points)] = kind
            points.append(fault(kind, good, place))
        points.append(point)
    return points, due


def fault(kind: str, good: list[dict[str, Any]], place: int) -> dict[str, Any]:
    before, point = good[place - 1], good[place]
    if kind == "out_of_range":
        return {**before, "lat": 91.0}
    if kind == "null_island":
        return {**before, "lat": 0.0, "lon": 0.0}
    if kind == "jump":
        # Between the times of its neighbours, so that its place is all that is wrong.
        return {**point, "t": before["t"].replace("Z", ".5Z"), "lat": point["lat"] + 0.5}
    if kind == "out_of_order":
        return {**good[place - 5], "t": good[place - 5]["t"].replace("Z", ".5Z")}
    return dict(before) if kind == "duplicate" else {**before, "lon": "east"}


def test_the_faults_put_into_it_are_found_and_nothing_else() -> None:
    found = total = 0
    for seed in range(20):
        points, due = with_faults(seed)
        told = bad(checked(points))
        assert told.keys() <= due.keys(), "a good point was dropped"
        found += sum(told.get(index) == [kind] for index, kind in due.items())
        total += len(due)
    assert (found, total) == (120, 120)
    assert f"of {total} faults" in QUALITY


def test_each_fault_is_named_and_harms_no_neighbour() -> None:
    a, b, c, d, *rest = drive()
    points = [
        a,
        b,
        b,
        {**c, "lon": 13},
        {**b, "t": 30},
        c,
        {**d, "speed": 900},
        d,
        {**d, "lat": 40.02},
        *rest,
    ]
    points += [{**rest[-1], "t": rest[-1]["t"] + 60, "accuracy": 5000}]
    assert bad(checked(points)) == {
        2: ["duplicate"], 3: ["jump"], 4: ["out_of_order"], 6: ["impossible_speed"], 8: ["same_time"],
        11: ["inaccurate"],
    }  # fmt: skip
    assert checked(points)["mean_speed_kmh"] == pytest.approx(30, rel=1e-3)


def test_a_bad_first_point_or_clock_does_not_damn_the_rest() -> None:
    good = drive()
    assert bad(checked([{**good[0], "lat": 10}, *good[1:]])) == {0: ["jump"]}
    assert bad(checked([{**good[0], "t": 1e9}, *good[1:]])) == {0: ["out_of_order"]}


def test_time_of_day_and_silence() -> None:
    good = drive()
    assert bad(checked(good, now=100.0)) == {3: ["future"], 4: ["future"], 5: ["future"]}
    assert bad(checked(good, now=300.0, max_age_s=100)) == {k: ["stale"] for k in range(4)}
    assert bad(checked(drive(), max_age_s=60)) == {k: ["stale"] for k in range(6)}, "by the clock"
    late = [*good, {**good[-1], "t": 5000}, {**good[-1], "t": 5300}, {**good[-1], "t": 5600}]
    output = checked(late)
    assert bad(output) == {}
    assert [row["reasons"] for row in output["findings"]] == [["gap"], ["frozen"], ["frozen"]]


def test_vehicles_are_checked_apart_and_a_level_is_given_where_free_flow_is_known() -> None:
    far = [{**point, "lon": 90} for point in drive(id="b")]
    mixed = [point for pair in zip(drive(id="a"), far, strict=True) for point in pair]
    output = checked(mixed, free_flow_kmh=60)
    assert (output["bad"], output["level"]) == (0, "heavy")
    assert "level" not in checked(mixed)


Numbers = st.one_of(st.floats(), st.integers(-(10**400), 10**400), st.text(max_size=5), st.none())
Odd = st.fixed_dictionaries({"t": Numbers, "lat": Numbers, "lon": Numbers})
Near = st.fixed_dictionaries(
    {
        "t": st.integers(0, 300),
        "lat": st.floats(39.9, 40.1),
        "lon": st.floats(9.9, 10.1),
        "id": st.sampled_from("ab"),
    }
)
Tracks = st.lists(st.one_of(Near, Near, Odd), min_size=1, max_size=40)


@given(Tracks, st.sampled_from(["flag", "sort"]))
def test_a_clean_track_is_clean(points: list[dict[str, Any]], order: str) -> None:
    once = checked(points, order=order)
    assert len(once["track"]) == len(points) - once["bad"]
    if once["track"]:
        twice = checked(once["track"], order=order)
        assert (twice["bad"], twice["track"]) == (0, once["track"])


@given(st.lists(Near, min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_sorted_the_order_does_not_matter(points: list[dict[str, Any]], chance: random.Random) -> None:
    shuffled = list(points)
    chance.shuffle(shuffled)
    assert checked(points, order="sort")["track"] == checked(shuffled, order="sort")["track"]


@given(st.lists(st.floats(0, 190), min_size=2, max_size=50), st.integers(1, 600))
def test_no_good_point_is_ever_dropped(speeds: list[float], step: int) -> None:
    points, lat = [], -60.0
    for place, kmh in enumerate(speeds):
        lat = min(89.0, lat + kmh * step / 3600 * NORTH)
        points.append({"t": place * step, "lat": lat, "lon": 20.0})
    assert checked(points)["bad"] == 0


@pytest.mark.parametrize(
    ("points", "told"),
    [
        (None, "Expected `array`"),
        ([], "is empty"),
        ("secret", "Expected `array`"),
        ([{}] * (MOST_POINTS + 1), "at most"),
    ],
)
def test_what_is_no_list_of_points_is_refused(points: Any, told: str) -> None:
    answer = asked(points)
    assert answer.error is not None
    assert answer.error.code == "bad_input"
    assert told in answer.error.message
    assert "secret" not in answer.error.message


def test_what_is_no_point_is_told_by_its_place() -> None:
    rows = [
        3,
        {},
        {"t": math.nan, "lat": 1, "lon": 1},
        {"t": 0, "lat": True, "lon": 1},
        {"t": 1.7e12, "lat": 1, "lon": 1},
    ]
    output = checked(rows)
    assert bad(output) == {place: ["malformed"] for place in range(5)}
    assert output["findings"][0]["told"] == "no object"
    assert output["track"] == []


def test_times_in_milliseconds_are_told() -> None:
    found = checked([{"t": 1_700_000_000_000, "lat": 52.5, "lon": 13.4}])["findings"]
    assert "milliseconds" in found[0]["told"]


def test_an_id_that_is_null_is_none() -> None:
    rows = [{"t": n * 60, "lat": 52.5 + n / 1000, "lon": 13.4, "id": None} for n in range(3)]
    assert checked(rows)["bad"] == 0
    assert checked([row | {"vehicle": "a"} for row in rows])["track"][0]["vehicle"] == "a"
