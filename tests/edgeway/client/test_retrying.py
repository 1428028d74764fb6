from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgeway.client import Retries

COUNTS = st.integers(1, 200)
UNIT = st.floats(0, 1, exclude_max=True)


@given(COUNTS, COUNTS, UNIT, st.floats(0, 100))
def test_waits_are_bounded_and_end(tries: int, failed: int, drawn: float, first_s: float) -> None:
    retries = Retries(tries, first_s, 10.0)
    wait = retries.wait_s(failed, None, lambda: drawn)
    assert (wait is None) == (failed >= tries)
    assert wait is None or 0 <= wait <= 10.0


@given(st.floats(0, 100), UNIT)
def test_what_the_gateway_asks_for_is_waited_or_given_up(after: float, drawn: float) -> None:
    wait = Retries(5, 0.2, 10.0).wait_s(1, after, lambda: drawn)
    assert (wait is None) == (after > 10.0)
    assert wait is None or after <= wait <= after + 0.2


def test_the_longest_wait_doubles() -> None:
    retries = Retries(10, 0.5, 3.0)
    assert [retries.wait_s(n, None, lambda: 1.0) for n in (1, 2, 3, 4, 5)] == [0.5, 1.0, 2.0, 3.0, 3.0]
