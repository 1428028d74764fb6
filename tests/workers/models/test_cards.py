"""Cards: registration, recalibration, and a running backend that takes a new calibration up."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schemas.cards import Card
from schemas.rules import parse_rules
from workers.backends import Answer, Backend, Call, RemoteBackend, Row
from workers.backends.function import FunctionBackend
from workers.errors import LoadError
from workers.models.calibrated import LOOK_S, Calibrated, CalibratedRemote
from workers.models.calibration import choose
from workers.models.cards import (
    calibrator_of,
    read_card,
    recalibrated,
    register,
    statement_of,
    write_card,
)
from workers.models.maps import Temperature

PLAIN = {"name": "m", "version": "3", "labels": ["a", "b"], "about": "größer"}
CARD = Card(capability="nlp/intent", side="local", version="3", model="m")


def held_out(count: int = 4000, cooled: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    raw = rng.beta(4, 1, count)
    return raw, rng.random(count) < Temperature(cooled).apply(raw)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "card.json").write_text(json.dumps(PLAIN), encoding="utf-8")
    return tmp_path


def registered(folder: Path) -> None:
    register(folder, *held_out(), threshold=0.9, fitted_on="held-out answers")


def test_registration_states_what_was_held_out_and_touches_nothing_else(folder: Path) -> None:
    stated = register(folder, *held_out(), threshold=0.9, fitted_on="held-out answers")
    card = read_card(folder)
    assert {key: card[key] for key in PLAIN} == PLAIN
    assert statement_of(card) == stated
    assert stated.method == "temperature"
    assert stated.samples == 4000
    assert stated.ece < 0.03
    assert 0 < stated.coverage < (held_out()[0] >= 0.9).mean()
    assert calibrator_of(card)(0.9) < 0.9
    assert os.listdir(folder) == ["card.json"]  # noqa: PTH208 - names are what is compared


def test_honest_confidences_get_a_map_that_changes_next_to_nothing(folder: Path) -> None:
    stated = register(folder, *held_out(cooled=1.0), threshold=0.9, fitted_on="x")
    assert stated.method == "temperature"
    assert calibrator_of(read_card(folder))(0.7) == pytest.approx(0.7, abs=0.02)


def test_a_model_may_be_registered_with_its_confidence_as_it_is(folder: Path) -> None:
    stated = register(folder, *held_out(cooled=1.0), threshold=0.9, fitted_on="x", method="none")
    assert stated.method == "none"
    assert calibrator_of(read_card(folder))(0.7) == 0.7
    assert register(folder, [0.5], [1.0], threshold=0.9, fitted_on="x").samples == 1


def test_a_recalibration_goes_on_top_and_keeps_the_one_before(folder: Path) -> None:
    registered(folder)
    card = read_card(folder)
    present = calibrator_of(card)
    raw, right = held_out(cooled=3.0)
    fit = choose(present.apply(raw), right, 0.9)
    renewed = recalibrated(card, fit, 0.9, fitted_on="feedback", now=17)
    assert renewed["calibration"]["previous"] == card["calibration"]
    assert renewed["calibration"]["since_ms"] == 17
    assert calibrator_of(renewed)(0.9) == pytest.approx(float(fit.map.apply(present(0.9))))  # type: ignore[union-attr]
    again = recalibrated(renewed, fit, 0.9, fitted_on="feedback", now=18)
    assert "previous" not in again["calibration"]["previous"]


def test_the_coverage_of_a_recalibration_is_the_old_one_scaled(folder: Path) -> None:
    registered(folder)
    card = read_card(folder)
    # Only accepted answers got feedback, and half of them were wrong: nothing is accepted any more.
    fit = choose([0.92] * 300, [1.0, 0.0] * 150, 0.9)
    assert recalibrated(card, fit, 0.9, fitted_on="feedback", now=1)["calibration"]["coverage"] == 0.0
    kept = choose(np.linspace(0.93, 0.99, 300), [1.0] * 299 + [0.0], 0.9)
    stated = statement_of(recalibrated(card, kept, 0.9, fitted_on="feedback", now=1))
    assert stated is not None
    assert stated.coverage == pytest.approx(card["calibration"]["coverage"], abs=1e-3)


@pytest.mark.parametrize(
    "calibration",
    [{"maps": [{"method": "magic"}]}, {"maps": 5}, {"maps": [7]}, [1]],
)
def test_a_wrong_calibration_is_named(calibration: Any) -> None:
    with pytest.raises(LoadError, match="card of m: calibration"):
        calibrator_of({"name": "m", "calibration": calibration})


@pytest.mark.parametrize("calibration", [5, "ece", ["ece"], True])
def test_a_calibration_that_is_no_object_is_named(calibration: Any) -> None:
    for look in (calibrator_of, statement_of):
        with pytest.raises(LoadError, match="calibration: it is no JSON object"):
            look({"name": "m", "calibration": calibration})


def test_a_statement_out_of_bounds_is_named() -> None:
    with pytest.raises(LoadError, match="card of m"):
        statement_of({"name": "m", "calibration": {"ece": 2}})


def test_what_is_no_card_is_named(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="cannot be read"):
        read_card(tmp_path)
    (tmp_path / "card.json").write_text("[]")
    with pytest.raises(LoadError, match="no JSON object"):
        read_card(tmp_path)
    (tmp_path / "card.json").write_text("{")
    with pytest.raises(LoadError, match="is no JSON"):
        read_card(tmp_path)
    (tmp_path / "card.json").write_text("[" * 3000 + "]" * 3000)
    with pytest.raises(LoadError, match="nested too deep"):
        read_card(tmp_path)


def test_a_card_that_cannot_be_written_stays(folder: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_card(folder, {"nan": float("nan")})
    assert read_card(folder) == PLAIN


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def sure(rows: Sequence[Row]) -> list[Any]:
    return [({"label": "a"}, row.inputs["sure"]) for row in rows]


def ask(backend: Backend, value: float | None = 0.9) -> Answer:
    return backend.infer([Row({"sure": value}, {})])[0]


def test_a_backend_speaks_as_its_card_says(folder: Path) -> None:
    registered(folder)
    backend = Calibrated(FunctionBackend(CARD, sure, batch=True), folder)
    assert isinstance(backend, Backend)
    expected = calibrator_of(read_card(folder))(0.9)
    assert ask(backend).confidence == pytest.approx(expected, abs=1e-6)
    assert ask(backend).output == {"label": "a"}
    assert ask(backend, None).confidence is None
    assert backend.card.calibrated
    assert backend.card.calibration == statement_of(read_card(folder))


class Elsewhere(FunctionBackend):
    def infer_calls(self, rows: Sequence[Row], calls: Any) -> list[Answer]:
        return self.infer(rows)


def test_a_backend_that_asks_elsewhere_keeps_its_calls(folder: Path) -> None:
    with pytest.raises(LoadError, match="wrap it in CalibratedRemote"):
        Calibrated(Elsewhere(CARD, sure, batch=True), folder)
    registered(folder)
    backend = CalibratedRemote(Elsewhere(CARD, sure, batch=True), folder)
    assert isinstance(backend, RemoteBackend)
    (answer,) = backend.infer_calls([Row({"sure": 0.9}, {})], [Call("r/s/cloud/1", 0.0)])
    assert answer.confidence == pytest.approx(calibrator_of(read_card(folder))(0.9), abs=1e-6)
    assert backend.card.calibrated
    backend.prepare(parse_rules(b"{}"))()
    assert backend.reachable() is None


@pytest.mark.parametrize("known", [True, False, None])
def test_it_tells_of_the_service_as_the_backend_does(folder: Path, known: bool | None) -> None:
    class Knowing(Elsewhere):
        def reachable(self) -> bool | None:
            return known

    assert CalibratedRemote(Knowing(CARD, sure, batch=True), folder).reachable() is known


def test_a_running_backend_takes_a_new_calibration_up_and_keeps_the_last_good(folder: Path) -> None:
    clock = Clock()
    backend = Calibrated(FunctionBackend(CARD, sure, batch=True), folder, clock=clock)
    assert ask(backend).confidence == 0.9
    assert not backend.card.calibrated
    registered(folder)
    assert ask(backend).confidence == 0.9, "the file is not looked at for every row"
    clock.now += LOOK_S
    mapped = ask(backend).confidence
    assert mapped == pytest.approx(calibrator_of(read_card(folder))(0.9), abs=1e-6)
    assert backend.card.calibration is not None
    (folder / "card.json").write_text("{ half a card")
    clock.now += LOOK_S
    assert ask(backend).confidence == mapped
    (folder / "card.json").unlink()
    clock.now += LOOK_S
    assert ask(backend).confidence == mapped
