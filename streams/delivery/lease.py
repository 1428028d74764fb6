"""The zombie rule: a process that was paused must prove that it still owns its partitions before a timer
speaks. Pure."""

from __future__ import annotations


class Lease:
    """How old the last acknowledged commit is, on a monotonic clock in seconds.

    A process that was stopped (SIGSTOP, a frozen machine) wakes up and does not know that others took its
    partitions. A
    commit that was acknowledged within half a session timeout proves that nobody can have: eviction takes a
    whole one.
    """

    def __init__(self, session_s: float, now: float) -> None:
        self._half = session_s / 2.0
        self._proved = now - session_s

    def prove(self, sent: float) -> None:
        """A commit sent at `sent` was acknowledged. The proof holds from the sending, not from the answer."""
        self._proved = max(self._proved, sent)

    def is_fresh(self, now: float) -> bool:
        return now - self._proved < self._half
