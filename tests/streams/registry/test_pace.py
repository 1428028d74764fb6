from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from streams.registry.pace import Pace


def test_a_burst_then_the_rate():
    pace = Pace(10.0)
    for _ in range(10):
        assert pace.has_room(0)
        pace.take(0)
    assert not pace.has_room(0)
    due = pace.next_room(0)
    assert due is not None
    assert not pace.has_room(due - 2)
    assert pace.has_room(due)


def test_less_than_one_a_second():
    pace = Pace(0.5)
    pace.take(0)
    assert not pace.has_room(1_900)
    assert pace.has_room(2_000)


def test_nothing_at_all():
    pace = Pace(0.0)
    assert not pace.has_room(10**9)
    assert pace.next_room(10**9) is None


@given(
    st.floats(0.1, 500),
    st.lists(st.tuples(st.integers(0, 3_000), st.integers(1, 50)), min_size=1, max_size=40),
)
def test_never_more_than_a_burst_and_the_rate(rate, waves):
    pace = Pace(rate)
    now = taken = 0
    for pause, calls in waves:
        now += pause
        for _ in range(calls):
            if pace.has_room(now):
                pace.take(now)
                taken += 1
    assert taken <= max(1.0, rate) + rate * now / 1000 + 1e-6
