"""Live figures of a capability over the last minute: pure, time is an argument (ms on any steady clock)."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from schemas.cards import Live

WINDOW_MS = 60_000.0
MAX_RUNS = 4096
"""Runs remembered at most: above 68 runs a second the window is shorter than a minute."""


class Run(NamedTuple):
    """One batch: when it ended, how long it took, its rows, and those that failed by the backend's fault."""

    ended: float
    service_ms: float
    rows: int
    errors: int


class Figures:
    """What the last minute's runs say."""

    def __init__(self) -> None:
        self._runs: deque[Run] = deque(maxlen=MAX_RUNS)
        self.served = 0

    def add(self, run: Run) -> None:
        self._runs.append(run)
        self.served += run.rows

    def live(self, now: float, *, queue: int = 0, in_flight: int = 0, load_ms: float = 0.0) -> Live:
        """The figures at `now`; percentiles by row, nearest rank."""
        while self._runs and self._runs[0].ended < now - WINDOW_MS:
            self._runs.popleft()
        rows = sum(run.rows for run in self._runs)
        errors = sum(run.errors for run in self._runs)
        by_time = sorted((run.service_ms, run.rows) for run in self._runs)
        return Live(
            queue=queue,
            in_flight=in_flight,
            p50_ms=_rank(by_time, rows, 0.5),
            p90_ms=_rank(by_time, rows, 0.9),
            error_ratio=errors / rows if rows else 0.0,
            served=self.served,
            load_ms=load_ms,
        )


def _rank(by_time: list[tuple[float, int]], rows: int, share: float) -> float | None:
    """The smallest time that at least `share` of the rows stayed within."""
    seen = 0
    for service_ms, count in by_time:
        seen += count
        if seen >= share * rows:
            return service_ms
    return None
