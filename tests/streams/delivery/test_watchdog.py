"""What hangs and what only waits."""

from __future__ import annotations

from streams.delivery.watchdog import Watchdog


def test_work_that_stands_still_is_stuck_after_the_patience() -> None:
    watchdog = Watchdog(10.0, 0.0)
    assert not watchdog.is_stuck(1.0, finished=5, waiting=3, reachable=True)
    assert not watchdog.is_stuck(11.0, finished=5, waiting=3, reachable=True)
    assert watchdog.is_stuck(11.1, finished=5, waiting=3, reachable=True)
    assert watchdog.stalled_s(21.0) == 20.0


def test_progress_starts_the_patience_anew() -> None:
    watchdog = Watchdog(10.0, 0.0)
    for second in range(100):
        assert not watchdog.is_stuck(second * 9.0, finished=second, waiting=3, reachable=True)


def test_idleness_is_no_hang() -> None:
    watchdog = Watchdog(10.0, 0.0)
    for second in range(0, 100, 5):
        assert not watchdog.is_stuck(float(second), finished=0, waiting=0, reachable=True)
    assert not watchdog.is_stuck(104.0, finished=0, waiting=1, reachable=True)


def test_waiting_for_kafka_is_no_hang() -> None:
    watchdog = Watchdog(10.0, 0.0)
    for second in range(0, 100, 5):
        assert not watchdog.is_stuck(float(second), finished=0, waiting=9, reachable=False)
    assert not watchdog.is_stuck(100.0, finished=0, waiting=9, reachable=True)
    assert watchdog.is_stuck(106.0, finished=0, waiting=9, reachable=True)
