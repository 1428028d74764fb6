"""When calls are made again: laws."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.backends.remote_retries import (
    FIRST_S,
    LONGEST_S,
    SPREAD_S,
    Happened,
    Policy,
    pause_s,
    retry_after_s,
)

SECONDS = st.floats(0, 1e6)
CHANCE = st.floats(0, 1, exclude_max=True)
HAPPENED = st.builds(Happened, st.booleans(), st.booleans(), st.none() | SECONDS)
POLICIES = st.builds(Policy, st.integers(1, 10), st.booleans())
NOW = datetime(2026, 11, 6, 8, 49, 37, tzinfo=UTC)


@given(HAPPENED, st.integers(1, 12), SECONDS, POLICIES, CHANCE)
def test_a_pause_is_safe_bounded_and_in_time(
    happened: Happened, attempt: int, left: float, policy: Policy, chance: float
) -> None:
    pause = pause_s(happened, attempt, left, policy, chance)
    if pause is None:
        return
    assert attempt < policy.attempts
    assert happened.passing
    assert happened.free or policy.repeatable, (
        "what may have been carried out is asked again under a key alone"
    )
    assert 0 <= pause < left
    if happened.after_s is None:
        assert pause <= LONGEST_S
    else:
        assert happened.after_s <= pause <= happened.after_s + SPREAD_S


@given(st.integers(1, 12), POLICIES, CHANCE, st.none() | SECONDS)
def test_what_is_safe_and_in_time_is_asked_again(
    attempt: int, policy: Policy, chance: float, after: float | None
) -> None:
    left = (after or 0.0) + LONGEST_S + SPREAD_S
    pause = pause_s(Happened(True, True, after), attempt, left, policy, chance)
    assert (pause is not None) == (attempt < policy.attempts)


@given(CHANCE)
def test_pauses_grow(chance: float) -> None:
    policy = Policy(10)
    pauses = [pause_s(Happened(True, True), n, 100.0, policy, chance) or 0.0 for n in range(1, 9)]
    assert pauses == sorted(pauses)
    assert pauses[0] <= FIRST_S


@given(st.integers(0, 10**9))
def test_seconds(seconds: int) -> None:
    assert retry_after_s(f" {seconds} ", NOW.timestamp()) == seconds


@given(st.integers(-(10**8), 10**9))
def test_dates(seconds: int) -> None:
    date = format_datetime(NOW + timedelta(seconds=seconds), usegmt=True)
    assert retry_after_s(date, NOW.timestamp()) == max(0, seconds)


@given(st.text())
def test_any_text_is_a_wait_or_none(text: str) -> None:
    found = retry_after_s(text, NOW.timestamp())
    assert found is None or found >= 0


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("1.5", None),
        ("\u0661", None),
        ("9" * 400, math.inf),
        ("Sunday, 06-Nov-26 08:49:47 GMT", 10.0),
        ("Fri, 06 Nov 2026 08:49:47", 10.0),
        ("Fri, 99 Nov 2026 08:49:47 GMT", None),
    ],
)
def test_odd_ones(text: str | None, wait: float | None) -> None:
    assert retry_after_s(text, NOW.timestamp()) == wait
