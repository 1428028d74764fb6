"""The watchdog: work waits, nothing gets done. Pure."""

from __future__ import annotations


class Watchdog:
    """Told of progress in regular intervals (monotonic seconds); says when a process hangs.

    `finished` is a count that only grows. Waiting for Kafka itself (`reachable` False) is no hang: a new
    process would not
    fare better.
    """

    def __init__(self, patience_s: float, now: float) -> None:
        self._patience = patience_s
        self._finished = -1
        self._since = now

    def is_stuck(self, now: float, *, finished: int, waiting: int, reachable: bool) -> bool:
        """Whether `waiting` records stood still for longer than the patience."""
        if finished != self._finished or waiting == 0 or not reachable:
            self._finished, self._since = finished, now
        return now - self._since > self._patience

    def stalled_s(self, now: float) -> float:
        """For how long nothing was finished although something waited."""
        return now - self._since
