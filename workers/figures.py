"""Live figures of a capability as it is now: pure, time is an argument (ms on any steady clock)."""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

from schemas.cards import Live

WINDOW_MS = 10_000.0
"""A breaker that opened lets only a few calls through. Over a minute it would take these a minute to prove
that a model is well again."""
LEAST_ROWS = 10
OLDEST_MS = 60_000.0
"""Where fewer than LEAST_ROWS ran within WINDOW_MS, the last ones before count too, back to this."""
MAX_RUNS = 4096
"""Runs remembered at most: above 400 runs a second the window is shorter."""


class Run(NamedTuple):
    """One batch: when it ended, how long it took, its rows, and those that failed by the backend's fault."""

    ended: float
    service_ms: float
    rows: int
    errors: int


class Figures:
    """What the runs of the last ten seconds say, or where these are few the last ten rows."""

    def __init__(self) -> None:
        self._runs: deque[Run] = deque(maxlen=MAX_RUNS)
        self._since = -math.inf
        self.served = 0

    def add(self, run: Run) -> None:
        self.served += run.rows
        if run.ended - run.service_ms >= self._since:
            self._runs.append(run)

    @property
    def renewed(self) -> bool:
        """Whether there are runs since the last `forget`."""
        return self._since > -math.inf and bool(self._runs)

    def forget(self, now: float) -> None:
        """Runs that began before `now` say nothing of what is there now: the service was away."""
        self._runs.clear()
        self._since = now

    def live(
        self,
        now: float,
        *,
        queue: int = 0,
        in_flight: int = 0,
        load_ms: float = 0.0,
        busy_ms: float = 0.0,
        provider: str = "",
        gpu: float | None = None,
        waits_for: str = "",
        reachable: bool | None = None,
    ) -> Live:
        """The figures at `now`; percentiles by row, nearest rank."""
        while self._runs and self._runs[0].ended < now - OLDEST_MS:
            self._runs.popleft()
        runs = self._recent(now)
        rows = sum(run.rows for run in runs)
        errors = sum(run.errors for run in runs)
        by_time = sorted((run.service_ms, run.rows) for run in runs)
        return Live(
            queue=queue,
            in_flight=in_flight,
            p50_ms=_rank(by_time, rows, 0.5),
            p90_ms=_rank(by_time, rows, 0.9),
            error_ratio=errors / rows if rows else 0.0,
            served=self.served,
            load_ms=load_ms,
            busy_ms=busy_ms,
            provider=provider,
            gpu=gpu,
            waits_for=waits_for,
            reachable=reachable,
        )

    def _recent(self, now: float) -> list[Run]:
        runs: list[Run] = []
        rows = 0
        for run in reversed(self._runs):
            if run.ended < now - WINDOW_MS and rows >= LEAST_ROWS:
                break
            runs.append(run)
            rows += run.rows
        return runs


def _rank(by_time: list[tuple[float, int]], rows: int, share: float) -> float | None:
    """The smallest time that at least `share` of the rows stayed within."""
    seen = 0
    for service_ms, count in by_time:
        seen += count
        if seen >= share * rows:
            return service_ms
    return None
