"""Maps of confidences: their laws, and that fits find what was put in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.models.calibration import (
    FITS,
    choose,
    coverage_at,
    ece,
    fit_isotonic,
    fit_temperature,
    loss,
)
from workers.models.maps import LONGEST, Calibrator, Curve, Temperature

RATIOS = st.floats(0, 1)
ROWS = st.lists(st.tuples(RATIOS, st.one_of(st.sampled_from([0.0, 1.0]), RATIOS)), min_size=1, max_size=120)
KNOTS = st.lists(RATIOS.map(lambda x: round(x, 9)), min_size=1, max_size=12, unique=True).map(sorted)


@st.composite
def curves(draw: st.DrawFn) -> Curve:
    x = draw(KNOTS)
    y = sorted(draw(st.lists(RATIOS, min_size=len(x), max_size=len(x))))
    return Curve(tuple(x), tuple(y))


MAPS = st.one_of(st.floats(0.05, 20).map(Temperature), curves())


def drawn(count: int, truth: Temperature, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Raw confidences that `truth` would make honest, and outcomes drawn accordingly."""
    rng = np.random.default_rng(seed)
    raw = rng.beta(3, 1, count)
    return raw, (rng.random(count) < truth.apply(raw)).astype(float)


@settings(deadline=None, max_examples=50)
@given(st.lists(MAPS, max_size=8), st.lists(RATIOS, min_size=2, max_size=30))
def test_a_calibrator_never_turns_an_order_and_stays_within_bounds(maps: list, values: list[float]) -> None:
    mapped = Calibrator(()).then(*maps).apply(np.sort(values))
    assert ((mapped >= 0) & (mapped <= 1)).all()
    assert (np.diff(mapped) >= -1e-12).all()


@settings(deadline=None, max_examples=50)
@given(st.lists(MAPS, max_size=8))
def test_a_calibrator_comes_back_from_its_card(maps: list) -> None:
    made = Calibrator(()).then(*maps)
    assert Calibrator.from_card(made.to_card()) == made


@settings(deadline=None, max_examples=30)
@given(st.lists(MAPS, min_size=LONGEST + 1, max_size=7), RATIOS)
def test_a_long_chain_is_one_curve_that_does_the_same(maps: list, value: float) -> None:
    made = Calibrator(())
    for one in maps:
        made = made.then(one)
    assert len(made.maps) <= LONGEST
    assert 0 <= made(value) <= 1


def test_two_temperatures_are_one() -> None:
    assert Calibrator(()).then(Temperature(2.0), Temperature(3.0)) == Calibrator((Temperature(6.0),))


@settings(deadline=None, max_examples=50)
@given(ROWS)
def test_ece_and_coverage_are_shares(rows: list[tuple[float, float]]) -> None:
    sure, right = zip(*rows, strict=True)
    assert 0 <= ece(sure, right) <= 1
    coverage, accuracy = coverage_at(sure, right, 0.9)
    assert 0 <= coverage <= 1
    assert 0 <= accuracy <= 1 + 1e-12


@settings(deadline=None, max_examples=60)
@given(ROWS)
def test_fits_take_any_data(rows: list[tuple[float, float]]) -> None:
    sure, right = (np.array(column) for column in zip(*rows, strict=True))
    for fit in FITS.values():
        mapped = fit(sure, right).apply(np.linspace(0, 1, 50))
        assert ((mapped >= 0) & (mapped <= 1)).all()
        assert (np.diff(mapped) >= -1e-12).all()
    chosen = choose(sure, right, 0.9)
    assert chosen.samples == len(rows)
    assert chosen.method in ("none", *FITS)


@pytest.mark.parametrize("outcome", [0.0, 1.0])
@pytest.mark.parametrize("sure", [[0.5], [0.9] * 200, [0.0, 1.0] * 80, list(np.linspace(0, 1, 300))])
def test_degenerate_data_raise_nothing_and_make_nothing_certain(sure: list[float], outcome: float) -> None:
    chosen = choose(sure, [outcome] * len(sure), 0.9)
    assert all(np.isfinite(value) for value in (*chosen.before, *chosen.after, *chosen.losses.values()))
    assert 0 < fit_isotonic(sure, [outcome] * len(sure)).apply(0.5) < 1


def test_no_samples_leave_confidences_alone() -> None:
    assert choose([], [], 0.9).map is None
    assert fit_temperature([], []).value == 1.0
    assert fit_isotonic([], []).apply(0.3) == pytest.approx(0.3)


def test_the_divisor_that_made_confidences_dishonest_is_found() -> None:
    raw, right = drawn(20_000, Temperature(2.0))
    assert fit_temperature(raw, right).value == pytest.approx(2.0, rel=0.08)
    assert ece(raw, right) > 0.05
    chosen = choose(raw, right, 0.9)
    assert chosen.method == "temperature"
    assert chosen.after.ece < 0.015


def test_honest_confidences_are_left_alone() -> None:
    raw, right = drawn(20_000, Temperature(1.0))
    assert ece(raw, right) < 0.015
    assert choose(raw, right, 0.9).method == "none"


def test_what_no_divisor_mends_the_isotonic_fit_does() -> None:
    rng = np.random.default_rng(5)
    raw = rng.random(6000)
    truth = np.where(raw < 0.5, 0.7, 0.8)
    right = (rng.random(6000) < truth).astype(float)
    chosen = choose(raw, right, 0.9)
    assert chosen.method == "isotonic"
    assert chosen.after.ece < 0.03 < chosen.before.ece


def test_the_isotonic_fit_falls_nowhere_and_keeps_equal_confidences_together() -> None:
    raw = np.repeat([0.2, 0.6, 0.9], 40)
    right = np.concatenate([np.ones(40), np.zeros(40), np.ones(40)])
    fitted = fit_isotonic(raw, right)
    assert fitted.apply(0.2) <= fitted.apply(0.6) <= fitted.apply(0.9)
    assert fitted.apply(0.6) == pytest.approx(0.5, abs=0.01)
    assert fitted.apply(0.9) > 0.95
    assert fitted.apply(0.4) == fitted.apply(0.25)


def test_a_score_is_a_weight_of_both_outcomes() -> None:
    sure = np.array([0.3, 0.8, 0.6])
    scored = loss(sure, [0.25] * 3)
    assert scored == pytest.approx(0.25 * loss(sure, [1.0] * 3) + 0.75 * loss(sure, [0.0] * 3))
    assert coverage_at([0.95, 0.95], [1.0, 0.5], 0.9) == (1.0, 0.75)


def test_confidences_that_hardly_differ_make_no_infinite_slope() -> None:
    tiny = [5e-324, 2.2250738585e-313, 1e-12] * 30
    assert np.isfinite(fit_isotonic(tiny, [0.0, 0.0, 1.0] * 30).apply([0.0, 1e-320, 0.5])).all()
    assert np.isfinite(choose(tiny, [0.0, 0.0, 1.0] * 30, 0.9).after).all()


def test_ece_by_hand() -> None:
    # Bin of 0.9: 0.9 against 0.5; bin of 0.3: 0.3 against 0; half the rows each.
    assert ece([0.9, 0.9, 0.3, 0.3], [1, 0, 0, 0]) == pytest.approx(0.5 * 0.4 + 0.5 * 0.3)
    assert ece([1.0], [1.0]) == 0.0


@pytest.mark.parametrize(
    ("sure", "right", "message"),
    [([0.5], [1, 0], "one outcome for each"), ([1.5], [1], "within 0 and 1"), ([np.nan], [1], "within")],
)
def test_rows_that_do_not_fit_are_refused(sure: list, right: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        choose(sure, right, 0.9)


@pytest.mark.parametrize(
    ("maps", "message"),
    [
        ([{"method": "magic"}], "unknown"),
        ([{"method": "temperature", "temperature": 0}], "above 0"),
        ([{"method": "temperature"}], "lacks"),
        ([{"method": "isotonic", "x": [0.1, 0.2], "y": [0.5]}], "as many of both"),
        ([{"method": "isotonic", "x": [0.1, 0.2], "y": [0.5, 0.4]}], "never falls"),
        ([{"method": "isotonic", "x": [0.2, 0.1], "y": [0.4, 0.5]}], "rising x"),
        ([{"method": "isotonic", "x": [0.2], "y": [1.5]}], r"leaves \[0, 1\]"),
    ],
)
def test_a_map_that_would_turn_orders_is_refused(maps: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Calibrator.from_card(maps)
