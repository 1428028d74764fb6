"""`traffic/forecast`: as good as its card says, and what it does with gaps, neighbours and other days."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.roads import DAY, simulate
from training.traffic import evaluate, measured_on, quality
from workers.backends import Answer, Row
from workers.backends.function import backends_of
from workers.library.traffic.forecast import forecast
from workers.library.traffic.model import FOLDER, model

CLOUD, LOCAL = sorted(backends_of(forecast), key=lambda backend: backend.card.side)
MONDAY = 4 * 86_400


def asked(inputs: dict[str, Any], **params: Any) -> Answer:
    (answer,) = LOCAL.infer([Row(inputs, params)])
    return answer


def output(inputs: dict[str, Any], **params: Any) -> Any:
    answer = asked(inputs, **params)
    assert answer.error is None, answer.error
    return answer.output


def test_the_card_states_what_is_measured_and_beats_the_naive_forecasts() -> None:
    card = json.loads((FOLDER / "card.json").read_text(encoding="utf-8"))
    figures = evaluate(model(), measured_on())
    assert quality(figures) == card["quality"] == LOCAL.card.quality == CLOUD.card.quality
    naive = zip(figures.persistence, figures.time_of_day, strict=True)
    assert all(mine < min(others) for mine, others in zip(figures.model, naive, strict=True))
    raw = (FOLDER / "model.npz").read_bytes()
    assert card["sha256"] == {"model.npz": hashlib.sha256(raw).hexdigest()}


def week(upto: int) -> tuple[dict[str, Any], Any]:
    """Inputs with eight days of six segments up to a step, neighbours named; and what the roads did then."""
    roads = simulate(41, days=10, chains=3, length=2)
    seen = [[None if np.isnan(v) else float(v) for v in row[:upto]] for row in roads.seen]
    names = [f"s{n}" for n in range(len(seen))]
    inputs = {
        "history": {
            name: [None if v is None else round(float(v * free), 1) for v in row]
            for name, row, free in zip(names, seen, roads.free_kmh, strict=True)
        },
        "step_min": 5,
        "end": MONDAY + (upto - 1) * 300,
        "free_flow_kmh": dict(zip(names, map(float, roads.free_kmh), strict=True)),
        "adjacency": {name: [names[other] for other in roads.down[n]] for n, name in enumerate(names)},
    }
    return inputs, roads.true[:, upto - 1 :] * roads.free_kmh[:, None]


def test_a_morning_of_a_network_is_foreseen() -> None:
    errors, persistent = [], []
    for hour in (7.0, 7.5, 8.5, 17.0):
        inputs, came = week(8 * DAY + int(hour * 12))
        found = output(inputs)
        assert (found["with_usual_speeds"], found["missing"]) == (6, [])
        assert len(found["forecast"]) == 6 * 4
        for row in found["forecast"]:
            its = came[int(row["segment"][1:])]
            errors.append(abs(row["speed_kmh"] - its[row["minute"] // 5]))
            persistent.append(abs(its[0] - its[row["minute"] // 5]))
            assert row["low_kmh"] <= row["speed_kmh"] <= row["high_kmh"]
    assert np.mean(errors) < 0.75 * np.mean(persistent)


def test_a_jam_ahead_slows_what_is_behind_it() -> None:
    calm = {"behind": [50.0] * 12, "ahead": [50.0] * 12}
    jam = calm | {"ahead": [50.0] * 8 + [20.0, 12.0, 10.0, 10.0]}
    about = {"step_min": 5, "free_flow_kmh": 55, "adjacency": {"behind": ["ahead"]}, "minutes": [15]}
    usually, now = (output({"history": which, **about})["forecast"][0] for which in (calm, jam))
    assert usually["segment"] == now["segment"] == "behind"
    assert now["speed_kmh"] < usually["speed_kmh"] - 2


def test_minutes_asked_for_and_one_road_without_a_name() -> None:
    found = output({"history": [50.0, 48, None, 47], "free_flow_kmh": 60, "horizon_min": 12})
    assert [(row["segment"], row["minute"]) for row in found["forecast"]] == [
        ("road", m) for m in (5, 10, 12)
    ]
    assert (found["observed_minutes"], found["free_flow_from"]) == (3, "given")
    found = output({"history": [40.0] * 20}, minutes=[60, 1])
    assert [row["minute"] for row in found["forecast"]] == [1, 60]
    assert found["free_flow_from"] == "readings"


def test_usual_speeds_given_as_a_profile_are_used() -> None:
    usual = [50.0] * 8 + [15.0] + [50.0] * 15
    at_the_hour = {
        "history": [50.0] * 60,
        "end": MONDAY + 8 * 3600 - 60,
        "free_flow_kmh": 55,
        "minutes": [30],
    }
    plain, told = (
        output({**at_the_hour, **more})["forecast"][0]["speed_kmh"]
        for more in ({}, {"profile": {"road": usual}})
    )
    assert told < plain - 3


def test_a_segment_that_fell_silent_is_told() -> None:
    rows = [{"segment": "a", "t": 60.0 * n, "speed_kmh": 40.0} for n in range(10)]
    rows += [{"segment": "b", "t": -7200.0, "speed_kmh": 40.0}, {"segment": "c", "t": 0.0, "speed_kmh": None}]
    found = output({"readings": rows})
    assert (found["missing"], {row["segment"] for row in found["forecast"]}) == (["b", "c"], {"a"})


Speeds = st.lists(st.one_of(st.none(), st.floats(0, 200)), min_size=1, max_size=40).filter(any)


@given(Speeds, st.floats(1, 200), st.integers(1, 60))
def test_intervals_hold_their_middle_and_nothing_is_out_of_bounds(
    speeds: list[float | None], free: float, minute: int
) -> None:
    answer = asked({"history": speeds, "free_flow_kmh": free, "minutes": [minute], "step_min": 5})
    assert answer.error is None or "no speed" in answer.error.message
    if answer.error is None:
        (row,) = answer.output["forecast"]
        top = max(1.3 * free, *(speed or 0 for speed in speeds)) + 0.01
        assert 0 <= row["low_kmh"] <= row["speed_kmh"] <= row["high_kmh"] <= top
        assert 0 <= answer.confidence <= 1


@given(st.randoms(use_true_random=False))
def test_the_order_of_readings_does_not_matter(chance: Any) -> None:
    rows = [{"segment": "ab"[n % 2], "t": 60.0 * n, "speed_kmh": 30.0 + n % 7} for n in range(40)]
    mixed = list(rows)
    chance.shuffle(mixed)
    key = lambda found: sorted((row["segment"], row["minute"], row["speed_kmh"]) for row in found["forecast"])  # noqa: E731
    assert key(output({"readings": mixed})) == key(output({"readings": rows}))


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({}, "give inputs.readings"),
        ({"history": []}, "no speed"),
        ({"history": [None]}, "no speed"),
        ({"history": [float("nan")]}, "Expected `float`"),
        ({"history": [1.0, -1.0]}, "Expected `float`"),
        ({"history": ["secret"]}, "Expected"),
        ({"history": [1.0], "horizon_min": 90}, "Expected `int` <= 60"),
        ({"history": [1.0], "free_flow_kmh": "60"}, "Expected"),
        ({"readings": [{"segment": "a"}]}, "required field `t`"),
        ({"points": [{"t": 0, "lat": 1, "lon": 1}]}, "two good points"),
        ({"points": []}, "is empty"),
        ({"history": {str(n): [1.0] for n in range(501)}}, "more than 500 segments"),
    ],
)
def test_bad_input_is_named_and_never_quoted(inputs: dict[str, Any], told: str) -> None:
    answer = asked(inputs)
    assert answer.error is not None
    assert (answer.error.code, told in answer.error.message) == ("bad_input", True), answer.error
    assert "secret" not in answer.error.message
