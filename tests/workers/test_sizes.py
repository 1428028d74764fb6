"""Laws of the batch size, and of the weight of decoded values."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.sizes import PROBE_EVERY, WORTH, BatchSize, rows_one_by_one, weight


@pytest.mark.parametrize(
    ("rows", "took_ms", "next_rows"),
    [(1, 0.0, 32), (1, 0.05, 32), (32, 32 * 2.0, 10), (1, 20.0, 1), (1, 900.0, 1), (4, 900.0, 1)],
)
def test_rows_one_by_one_fill_no_more_than_their_time(rows: int, took_ms: float, next_rows: int) -> None:
    assert rows_one_by_one(32, rows, took_ms) == next_rows


def settled(took: Callable[[int], float], *, noise: float = 1.3, runs: int = 400) -> list[int]:
    """The limits of the last runs of a model, with at times few and at times many rows waiting."""
    choose = random.Random(5)
    size, limits = BatchSize(32), [32]
    for _ in range(runs):
        rows = min(limits[-1], choose.choice([1, 1, 2, 5, 12, 64, 64]))
        limits.append(size.learn(rows, took(rows) * choose.uniform(1.0, noise)))
    return limits[-PROBE_EVERY:]


def test_a_model_that_gains_nothing_by_batches_runs_row_by_row() -> None:
    limits = settled(lambda rows: 15.0 * rows)
    assert limits.count(1) >= len(limits) - 2, "but for a probe now and then"


def test_a_model_that_gains_by_batches_fills_them() -> None:
    assert set(settled(lambda rows: 20.0 + 0.5 * rows)) == {32}


def test_a_quick_model_is_never_cut() -> None:
    assert set(settled(lambda rows: 0.1 * rows)) == {32}
    assert set(settled(lambda rows: 0.05 + 0.02 * rows)) == {32}


def test_a_model_that_changes_is_followed() -> None:
    size = BatchSize(32)
    limit = 32
    for took in (lambda rows: 15.0 * rows, lambda rows: 20.0 + 0.1 * rows):
        for _ in range(20 * PROBE_EVERY):
            limit = size.learn(limit, took(limit))
    assert limit == 32


@given(
    st.lists(st.tuples(st.integers(1, 64), st.floats(0.0, 1e4)), min_size=1, max_size=200), st.integers(1, 64)
)
def test_a_limit_is_always_one_that_may_be(runs: list[tuple[int, float]], most: int) -> None:
    size = BatchSize(most)
    assert size.limit() == most
    for rows, took in runs:
        assert 1 <= size.learn(rows, took) <= most


@given(st.floats(6.0, 500.0), st.floats(0.01, 50.0))
def test_the_size_that_is_settled_on_costs_at_most_the_tolerance_more(fixed: float, each: float) -> None:
    def took(rows: int) -> float:
        return fixed + each * rows

    size, limit = BatchSize(32), 32
    for rows in (1, 2, 4, 8, 16, 32):
        limit = size.learn(rows, took(rows))
    best = took(32) / 32
    assert took(limit) / limit <= (1 + WORTH) * best * 1.0001 or limit == 32


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=8), inner, max_size=8),
    max_leaves=40,
)


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(st.text(max_size=8), values, max_size=4), st.sampled_from([1, 60]))
def test_the_weight_is_about_what_decoding_takes(value: dict[str, Any], times: int) -> None:
    packed = msgspec.msgpack.encode({"many": [value] * times})
    tracemalloc.start()
    try:
        held = msgspec.msgpack.decode(packed)
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert weight(held) >= 0.5 * taken - 2000
    assert weight(held) <= 12 * taken + 2000


@pytest.mark.parametrize("count", [0, 1, 784, 100_000])
def test_numbers_weigh_what_they_take(count: int) -> None:
    packed = msgspec.msgpack.encode([0.5 + n for n in range(count)])
    tracemalloc.start()
    try:
        held = msgspec.msgpack.decode(packed)
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert 0.8 * taken - 500 <= weight(held) <= 1.3 * taken + 500
