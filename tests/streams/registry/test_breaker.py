from __future__ import annotations

import msgspec

from streams.registry import Breaker, Figures
from streams.registry.breaker import MIN_CALLS, OPEN_MS, TRIALS


def good(served: int = 100) -> Figures:
    return Figures(workers=1, p50_ms=5.0, p90_ms=10.0, served=served)


def slow(served: int = 100, p90_ms: float = 900.0) -> Figures:
    return Figures(workers=1, p50_ms=5.0, p90_ms=p90_ms, served=served)


def failing(served: int = 100, ratio: float = 0.6) -> Figures:
    return Figures(workers=1, p50_ms=5.0, p90_ms=10.0, error_ratio=ratio, served=served)


def test_closed_while_figures_are_good():
    breaker = Breaker()
    breaker.observe(good(), 0)
    assert breaker.gate(0) == "closed"
    assert breaker.next_change() is None


def test_opens_above_slow_ms():
    breaker = Breaker(slow_ms=500)
    breaker.observe(slow(p90_ms=500.0), 0)
    assert breaker.gate(0) == "closed"
    breaker.observe(slow(p90_ms=501.0), 0)
    assert breaker.gate(0) == "slow"


def test_slow_ms_is_its_own():
    breaker = Breaker(slow_ms=1000)
    breaker.observe(slow(p90_ms=900.0), 0)
    assert breaker.gate(0) == "closed"


def test_opens_when_more_than_half_fail():
    breaker = Breaker()
    breaker.observe(failing(ratio=0.5), 0)
    assert breaker.gate(0) == "closed"
    breaker.observe(failing(ratio=0.51), 0)
    assert breaker.gate(0) == "failing"


def test_a_few_calls_prove_nothing():
    breaker = Breaker()
    breaker.observe(failing(served=MIN_CALLS - 1), 0)
    assert breaker.gate(0) == "closed"


def test_half_open_lets_a_few_through_then_waits():
    breaker = Breaker()
    breaker.observe(failing(), 0)
    assert breaker.gate(OPEN_MS - 1) == "failing"
    for _ in range(TRIALS):
        assert breaker.gate(OPEN_MS) == "half_open"
        breaker.admit(OPEN_MS)
    assert breaker.gate(2 * OPEN_MS) == "failing"


def test_each_beat_says_how_many_trials_are_left():
    breaker = Breaker()
    breaker.observe(failing(served=100), 0)
    for _ in range(TRIALS):
        breaker.gate(OPEN_MS)
        breaker.admit(OPEN_MS)
    # Two were served, two wait, and of the fifth nothing is known: it never came, or went elsewhere.
    waiting = msgspec.structs.replace(failing(served=102), queue=2)
    breaker.observe(waiting, OPEN_MS + 10)
    assert breaker.gate(OPEN_MS + 10) == "half_open"
    breaker.admit(OPEN_MS + 10)
    assert breaker.gate(OPEN_MS + 10) == "failing"


def test_what_others_send_uses_up_the_trials():
    breaker = Breaker()
    breaker.observe(failing(served=100), 0)
    breaker.gate(OPEN_MS)
    breaker.observe(msgspec.structs.replace(failing(served=100), queue=TRIALS), OPEN_MS + 10)
    assert breaker.gate(OPEN_MS + 10) == "failing"


def test_a_worker_more_is_as_many_trials_more():
    breaker = Breaker()
    two = msgspec.structs.replace(failing(served=100), workers=2)
    breaker.observe(two, 0)
    for _ in range(2 * TRIALS):
        assert breaker.gate(OPEN_MS) == "half_open"
        breaker.admit(OPEN_MS)
    assert breaker.gate(OPEN_MS) == "failing"


def test_good_figures_without_a_call_close_nothing():
    breaker = Breaker()
    breaker.observe(failing(served=100), 0)
    breaker.gate(OPEN_MS)
    breaker.observe(good(served=100), OPEN_MS + 10)
    assert breaker.gate(OPEN_MS + 10) == "half_open"


def test_a_worker_that_was_restarted_counts_anew():
    breaker = Breaker()
    breaker.observe(failing(served=100), 0)
    breaker.gate(OPEN_MS)
    breaker.observe(good(served=0), OPEN_MS + 10)
    assert breaker.gate(OPEN_MS + 10) == "half_open"
    breaker.observe(good(served=1), OPEN_MS + 20)
    assert breaker.gate(OPEN_MS + 20) == "closed"


def test_closes_by_good_figures():
    breaker = Breaker()
    breaker.observe(failing(served=100), 0)
    breaker.gate(OPEN_MS)
    breaker.observe(good(served=103), OPEN_MS + 1)
    assert breaker.gate(OPEN_MS + 1) == "closed"


def test_good_figures_do_not_close_it_before_its_time():
    breaker = Breaker()
    breaker.observe(failing(), 0)
    breaker.observe(good(served=101), OPEN_MS - 1)
    assert breaker.gate(OPEN_MS - 1) == "failing"


def test_bad_figures_of_new_calls_open_it_again():
    breaker = Breaker()
    breaker.observe(failing(served=100), 0)
    breaker.gate(OPEN_MS)
    breaker.observe(failing(served=100 + TRIALS - 1), OPEN_MS + 5)
    assert breaker.gate(OPEN_MS + 5) == "half_open"
    breaker.observe(failing(served=100 + TRIALS), OPEN_MS + 10)
    assert breaker.gate(OPEN_MS + 10) == "failing"
    assert breaker.gate(2 * OPEN_MS) == "failing"
    assert breaker.gate(2 * OPEN_MS + 10) == "half_open"


def test_bad_figures_of_old_calls_keep_it_half_open():
    breaker = Breaker()
    breaker.observe(failing(served=100), 0)
    breaker.gate(OPEN_MS)
    breaker.observe(failing(served=100), OPEN_MS + 10)
    assert breaker.gate(OPEN_MS + 10) == "half_open"


def test_calls_answered_while_open_are_no_trials():
    breaker = Breaker()
    breaker.observe(failing(served=100), 0)
    breaker.observe(failing(served=140), 10)
    breaker.gate(OPEN_MS)
    breaker.observe(failing(served=140), OPEN_MS + 10)
    assert breaker.gate(OPEN_MS + 10) == "half_open"
