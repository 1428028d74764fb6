"""A circuit breaker for one capability on one side, fed by live figures."""

from __future__ import annotations

from typing import Literal

from streams.registry.figures import Figures, Gate

SLOW_MS = 500
FAILING_RATIO = 0.5
MIN_CALLS = 10
OPEN_MS = 5_000
TRIALS = 5
PATIENCE_MS = 2_500
MOST_SLACK = 32

Cause = Literal["slow", "failing", "away"]


class Breaker:
    """Closed, open or half open; time is an argument, in ms.

    It opens when at least MIN_CALLS calls were served and their p90 is above `slow_ms` or their error ratio
    above FAILING_RATIO, and where every worker hangs: then it stays open until one does not. After OPEN_MS it
    is half open: TRIALS calls a worker may pass. It closes once calls were served since then and the figures
    are good; it opens again once all trials were served and they are bad.

    It opens too where the service behind every worker is away, for as long as that is so: no trials are spent
    on it. Once one can reach it and the figures are not bad it is half open at once.

    Trials are counted twice, because not every plan that may call the target does so, and the aggregator
    calls without asking: what the router lets through uses one up, and each beat sets how many are left by
    what was served since and what waits. Where PATIENCE_MS after all were used up fewer calls than that have
    come, twice as many may pass, and so on. A side without a beat is not in the view at all, and so needs
    no breaker.
    """

    __slots__ = ("_cause", "_left", "_served", "_slack", "_until", "_workers", "slow_ms")

    def __init__(self, slow_ms: float = SLOW_MS) -> None:
        self.slow_ms = slow_ms
        self._cause: Cause | None = None
        self._until = 0
        self._left = -1  # trials left; below zero while it is not half open
        self._served = 0
        self._slack = 1
        self._workers = 1

    def observe(self, figures: Figures, now: int) -> None:
        """Learn from the figures as they are at `now`."""
        self._workers = figures.workers
        bad = self._judge(figures)
        if self._cause == "away" and bad != "away":
            # It failed, and is told to be back: that is for its trials to show.
            self._open(bad or "failing", figures, now)
            self._slack = 1
            if bad is None:
                self._until = now
        elif bad is not None and (bad == "away" or figures.stands or self._cause is None):
            self._open(bad, figures, now)
        elif self._cause is None:
            return
        elif self._is_half_open():
            self._weigh(bad, figures, now)
        else:
            # Calls sent before it opened are still being counted; only those after may speak.
            self._served = figures.served
        self._advance(now)

    def gate(self, now: int) -> Gate:
        """What may pass at `now`."""
        self._advance(now)
        if self._cause is None:
            return "closed"
        return "half_open" if self._left > 0 else self._cause

    def admit(self, now: int) -> None:
        """One call goes to the target at `now`: half open, it is one of the trials."""
        self._advance(now)
        if self._cause is not None and self._left > 0:
            self._left -= 1

    def next_change(self) -> int | None:
        """When the gate changes by time alone, None where it does not."""
        return self._until if self._is_timed() else None

    def _weigh(self, bad: Cause | None, figures: Figures, now: int) -> None:
        """Half open: close, open again, or let more through."""
        if figures.served < self._served:
            self._served = 0  # a worker was restarted and counts anew
        served = figures.served - self._served
        if served and bad is None:
            self._cause, self._left, self._slack = None, -1, 1
        elif bad is not None and served >= self._trials:
            if served >= 2 * self._trials:
                self._slack = 1
            self._open(bad, figures, now)
        else:
            wanted = self._trials - served - figures.queue
            if wanted > 0 and self._left == 0 and now >= self._until:
                self._slack = min(MOST_SLACK, 2 * self._slack)
                self._until = now + PATIENCE_MS
            self._left = max(0, wanted * self._slack)

    @property
    def _trials(self) -> int:
        return TRIALS * self._workers

    def _is_half_open(self) -> bool:
        return self._left >= 0

    def _is_timed(self) -> bool:
        """Whether it is open, and half open by time alone."""
        return self._cause not in (None, "away") and not self._is_half_open()

    def _advance(self, now: int) -> None:
        if self._is_timed() and now >= self._until:
            self._left = self._trials * self._slack
            self._until = now + PATIENCE_MS

    def _open(self, cause: Cause, figures: Figures, now: int) -> None:
        self._cause = cause
        self._until = now + OPEN_MS
        self._left = -1
        self._served = figures.served

    def _judge(self, figures: Figures) -> Cause | None:
        if figures.gone:
            return "away"
        if figures.stands:
            return "slow"
        if figures.served < MIN_CALLS:
            return None
        if figures.error_ratio > FAILING_RATIO:
            return "failing"
        if figures.p90_ms is not None and figures.p90_ms > self.slow_ms:
            return "slow"
        return None
