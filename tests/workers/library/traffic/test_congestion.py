"""`traffic/congestion`: levels by share of free-flow speed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.backends import Answer, Row
from workers.backends.function import backends_of
from workers.library.levels import LEVELS
from workers.library.traffic.congestion import congestion, held

LOCAL = next(backend for backend in backends_of(congestion) if backend.card.side == "local")
NORTH = 1 / 111.19493


def asked(inputs: dict[str, Any], **params: Any) -> Answer:
    (answer,) = LOCAL.infer([Row(inputs, params)])
    return answer


def output(inputs: dict[str, Any], **params: Any) -> Any:
    answer = asked(inputs, **params)
    assert answer.error is None, answer.error
    return answer.output


@pytest.mark.parametrize(
    ("speed", "level"),
    [(60, "free"), (41, "free"), (40, "moderate"), (30, "heavy"), (18.1, "heavy"), (18, "jam"), (0, "jam")],
)
def test_levels_of_one_road_by_its_last_minutes(speed: float, level: str) -> None:
    found = output({"history": [90.0, *[float(speed)] * 5], "free_flow_kmh": 60})
    assert (found["level"], found["segments"][0]["level"], found["free_flow_kmh"]) == (level, level, 60)
    assert found["recent_speed_kmh"] == pytest.approx(max(speed, 1))


def test_roads_on_which_nothing_moves_are_not_free() -> None:
    for history in ({"a": [0, 0, 0]}, {"a": [0, 0], "b": [0, 0]}, {"a": [0.5, 0.0, 0.0]}):
        found = output({"history": history}, recent_min=2)
        assert {found["level"], *(row["level"] for row in found["segments"])} == {"jam"}


def test_segments_together_take_their_time_and_length() -> None:
    history = {"long": [60.0] * 5, "short": [6.0] * 5, "silent": [None] * 5}
    found = output({"history": history, "free_flow_kmh": 60, "lengths_km": {"long": 9.0, "short": 1.0}})
    assert [row["level"] for row in found["segments"]] == ["free", "jam"]
    # 10 km in 9 + 10 minutes instead of 10.
    assert (found["flow_ratio"], found["level"], found["missing"]) == (0.5263, "moderate", ["silent"])


def test_a_drive_gives_the_speeds() -> None:
    points = [{"t": 60 * n, "lat": 50 + 0.5 * n * NORTH, "lon": 8} for n in range(8)]
    found = output({"points": points, "free_flow_kmh": 50})
    assert (found["recent_speed_kmh"], found["level"]) == (pytest.approx(30, abs=0.01), "moderate")


def test_a_level_is_left_only_beyond_the_margin() -> None:
    kept = {"history": [39.5] * 5, "free_flow_kmh": 60, "previous": {"road": "free"}}
    assert output(kept)["segments"][0]["level"] == "free"
    assert output(kept, hysteresis=0.0)["segments"][0]["level"] == "moderate"
    assert output({**kept, "previous": {}})["segments"][0]["level"] == "moderate"


Shares = st.floats(0, 1.5)


@given(Shares, Shares, st.sampled_from(LEVELS), st.floats(0, 0.15))
def test_more_speed_is_never_a_worse_level(a: float, b: float, before: str, margin: float) -> None:
    low, high = sorted((a, b))
    assert LEVELS.index(held(high, before, margin)) <= LEVELS.index(held(low, before, margin))


@given(Shares, st.sampled_from(LEVELS), st.floats(0, 0.15))
def test_a_level_once_held_stays_held(share: float, before: str, margin: float) -> None:
    now = held(share, before, margin)
    assert held(share, now, margin) == now


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({}, "give inputs.readings"),
        ({"history": [5.0], "bounds": [0.3, 0.5, 0.6]}, "that fall"),
        ({"history": [5.0], "previous": {"road": "secret"}}, "not allowed here"),
        ({"history": [5.0], "hysteresis": 2.0}, "Expected `float`"),
    ],
)
def test_bad_input_is_named_and_never_quoted(inputs: dict[str, Any], told: str) -> None:
    answer = asked(inputs)
    assert answer.error is not None
    assert (answer.error.code, told in answer.error.message) == ("bad_input", True), answer.error
    assert "secret" not in answer.error.message
