from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.bounds import MAX_MONEY
from streams.budget.money import MOST, cost_micros, limit_micros

MONEY = st.floats(0, 1e9, allow_nan=False)


@pytest.mark.parametrize(
    ("cost", "micros"),
    [(0.0, 0), (0.1, 100_000), (0.1 + 0.2, 300_000), (1e-6, 1), (1e-7, 1), (0.000_001_5, 2), (1e12, MOST)],
)
def test_a_cost_is_rounded_up_and_the_dust_of_floats_is_not(cost: float, micros: int) -> None:
    assert cost_micros(cost) == micros


@pytest.mark.parametrize("cost", [-0.1, float("nan"), float("inf")])
def test_what_is_no_cost_is_refused(cost: float) -> None:
    with pytest.raises(ValueError, match="a cost is a number"):
        cost_micros(cost)


@given(MONEY, MONEY)
def test_order_is_kept_so_that_an_actual_within_its_bound_stays_within(one: float, two: float) -> None:
    low, high = sorted((one, two))
    assert cost_micros(low) <= cost_micros(high)


@given(MONEY)
def test_a_limit_is_never_above_what_was_set(limit: float) -> None:
    assert limit_micros(limit) <= limit * 1_000_000 * (1 + 1e-12) + 1e-3
    assert limit_micros(limit) <= cost_micros(limit)


def test_the_largest_amount_that_rules_can_hold_counts_exactly() -> None:
    assert limit_micros(MAX_MONEY) == MOST
    assert float(MOST) == MOST
