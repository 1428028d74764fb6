import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.demo.capabilities import congestion, forecast, gps_check
from examples.demo.samples import requests

TRACES = [request["inputs"] for request in requests()[2:]]
NORTH = 1 / 111.19493  # degrees of latitude in a kilometre on the sphere used


def drive(kmh, minutes=3, vehicle="a"):
    return [
        {"t": 60 * k, "lat": kmh / 60 * k * NORTH, "lon": 0, "vehicle": vehicle} for k in range(minutes + 1)
    ]


@pytest.mark.parametrize(("kmh", "level"), [(50, "free"), (30, "slow"), (15, "heavy"), (5, "blocked")])
def test_a_steady_drive_has_its_speed_and_level(kmh, level):
    output, confidence = gps_check({"points": drive(kmh)}, {})
    assert output["mean_speed_kmh"] == pytest.approx(kmh, rel=1e-3)
    assert output["level"] == level
    assert output["flags"] == [[], [], [], []]
    assert (output["valid_share"], confidence) == (1, 0.6)


def test_each_fault_is_named_and_harms_no_neighbour():
    a, b, c, d = drive(30)
    points = [a, b, b, {**c, "lat": 95}, {**c, "lon": 3}, {**b, "t": 30}, c, d]
    output, _ = gps_check({"points": points}, {})
    assert output["flags"] == [[], [], ["duplicate"], ["out_of_range"], ["jump"], ["out_of_order"], [], []]
    assert output["mean_speed_kmh"] == pytest.approx(30, rel=1e-3)


def test_vehicles_are_checked_apart():
    far = [{**point, "lon": 90, "vehicle": "b"} for point in drive(30)]
    mixed = [point for pair in zip(drive(30), far, strict=True) for point in pair]
    assert gps_check({"points": mixed}, {})[0]["valid_share"] == 1


def test_one_point_gives_no_level_and_no_confidence():
    output, confidence = gps_check({"points": drive(30, minutes=0)}, {})
    assert "level" not in output
    assert confidence == 0


@pytest.mark.parametrize("inputs", TRACES)
def test_the_samples_hold_faults_and_a_level_to_override(inputs):
    output, _ = gps_check(inputs, {})
    faults = sorted(fault for flags in output["flags"] for fault in flags)
    assert faults == ["duplicate", "duplicate", "jump", "jump"]
    assert output["level"] == "slow"
    assert congestion(inputs, {})[0]["level"] == "heavy"
    ahead = forecast(inputs, {})[0]["forecast"]
    assert [row["minute"] for row in ahead] == list(range(1, inputs.get("horizon_min", 15) + 1))


def test_shared_key_is_the_level_alone():
    keys = [set(function(TRACES[0], {})[0]) for function in (gps_check, forecast, congestion)]
    assert keys[0] & keys[2] == {"level"}
    assert not keys[1] & (keys[0] | keys[2])


def test_holt_keeps_a_constant_and_follows_a_trend():
    flat = forecast({"history": [40] * 10, "horizon_min": 3}, {})[0]
    assert flat["method"] == "damped_holt"
    assert [row["speed_kmh"] for row in flat["forecast"]] == [40, 40, 40]
    falling = [row["speed_kmh"] for row in forecast({"history": [50, 45, 40, 35, 30]}, {})[0]["forecast"]]
    assert falling == sorted(falling, reverse=True)
    assert falling[0] < 30


def test_seasonal_naive_repeats_the_season():
    output, _ = forecast({"history": [9, 9, 10, 20, 30], "season_min": 3, "horizon_min": 4}, {})
    assert output["method"] == "seasonal_naive"
    assert [row["speed_kmh"] for row in output["forecast"]] == [10, 20, 30, 10]


@given(st.lists(st.floats(0, 500), min_size=1, max_size=50), st.integers(1, 120), st.floats(1, 200))
def test_forecast_stays_within_its_bounds(history, horizon, free):
    inputs = {"history": history, "horizon_min": horizon, "free_flow_kmh": free}
    output, confidence = forecast(inputs, {})
    assert len(output["forecast"]) == horizon
    assert all(0 <= row["speed_kmh"] <= 1.2 * free + 0.01 for row in output["forecast"])
    assert 0 < confidence <= 0.9


@pytest.mark.parametrize(("speed", "level"), [(45, "free"), (30, "slow"), (15, "heavy"), (14.9, "blocked")])
def test_congestion_is_measured_against_the_free_flow(speed, level):
    output, confidence = congestion({"history": [1, *[speed] * 5], "free_flow_kmh": 60}, {})
    assert output["level"] == level
    assert confidence == pytest.approx(5 / 6, abs=1e-4)


def test_a_gap_of_years_does_not_fill_memory():
    late = [{**point, "t": point["t"] + 1e10} for point in drive(30)]
    assert forecast({"points": drive(30) + late}, {})[0]["observed_minutes"] < 100


@pytest.mark.parametrize("function", [gps_check, forecast, congestion])
@pytest.mark.parametrize(
    ("points", "message"),
    [
        (None, "at least one point"),
        ([], "at least one point"),
        ([3], r"points\[0\] must be an object"),
        ([{"t": 0, "lat": "1", "lon": 2}], r"points\[0\]\.lat"),
        ([{"t": math.nan, "lat": 1, "lon": 2}], r"points\[0\]\.t"),
        ([{"t": 10**400, "lat": 1, "lon": 2}], r"points\[0\]\.t"),
        ([{"t": 1.7e12, "lat": 1, "lon": 2}], "t in seconds"),
        ([{"t": 0, "lat": 0, "lon": 0}] * 10_001, "at most 10000"),
    ],
)
def test_bad_points_are_refused(function, points, message):
    with pytest.raises(ValueError, match=message):
        function({"points": points}, {})


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"points": [{"t": 0, "lat": 0, "lon": 0}]}, "two good points"),
        ({"history": []}, "list of 1 to"),
        ({"history": [math.nan]}, r"history\[0\]"),
        ({"history": [1, -1]}, r"history\[1\]"),
        ({"history": [1], "horizon_min": 0}, "horizon_min must be a number from 1 to 120"),
        ({"history": [1], "free_flow_kmh": "60"}, "free_flow_kmh"),
    ],
)
def test_bad_forecast_inputs_are_refused(inputs, message):
    with pytest.raises(ValueError, match=message):
        forecast(inputs, {})
