"""What a service tells of its runs: live figures for the heartbeat, and metrics."""

from __future__ import annotations

import time

from schemas.cards import Card, Live
from streams import metrics
from workers import figures
from workers.backends import Backend, Computes, Reachable, Waits
from workers.engine import Engine
from workers.inference import BACKEND_FAULTS
from workers.work import Run


class Counters:
    """Counts the runs of the capability of `card`."""

    def __init__(self, card: Card) -> None:
        self._figures = figures.Figures()
        self._inference_s = metrics.INFERENCE_S.labels(card.capability)
        self._batch_rows = metrics.BATCH_ROWS.labels(card.capability)
        self._answered = metrics.SUBTASKS.labels(card.capability, card.side)
        self._failed = metrics.BACKEND_FAULTS.labels(card.capability, card.side)
        self._reached: bool | None = None

    def add(self, run: Run) -> None:
        """A run is answered."""
        if run.ran:
            faults = sum(1 for a in run.answers if a.error is not None and a.error.code in BACKEND_FAULTS)
            ended = time.monotonic() * 1000.0
            self._figures.add(figures.Run(ended, run.service_ms, len(run.works), faults))
            self._inference_s.observe(run.service_ms / 1000.0)
            self._batch_rows.observe(len(run.works))
            if faults:
                self._failed.inc(faults)
        self._answered.inc(len(run.works))

    def news(self, backend: Backend) -> tuple[bool | None, bool]:
        """Whether the service that `backend` asks is there, and whether it has answered since its return."""
        return reachable(backend), self._figures.renewed

    def live(self, engine: Engine, queue: int) -> Live:
        """The figures of now, beside what runs on `engine` and `queue` rows that wait."""
        now = time.monotonic()
        oldest, reached = engine.oldest, reachable(engine.backend)
        if self._reached is False and reached is not False:
            # Half of the last rows failed while it was away: by these it would fail for another ten seconds.
            self._figures.forget(now * 1000.0)
        self._reached = reached
        provider, gpu = computes(engine.backend)
        return self._figures.live(
            now * 1000.0,
            queue=queue,
            in_flight=engine.rows,
            load_ms=engine.load_ms,
            busy_ms=0.0 if oldest is None else (now - oldest) * 1000.0,
            provider=provider,
            gpu=gpu,
            waits_for=waiting(engine.backend),
            reachable=reached,
        )


def waiting(backend: Backend) -> str:
    """What a backend still waits for, empty where it is ready."""
    return backend.waits_for if isinstance(backend, Waits) else ""


def reachable(backend: Backend) -> bool | None:
    """Whether the service that a backend asks is there, None where nobody knows or there is none."""
    return backend.reachable() if isinstance(backend, Reachable) else None


def computes(backend: Backend) -> tuple[str, float | None]:
    """What a backend computes on, and how busy its GPU is; ("", None) where it does not say."""
    return (backend.provider, backend.gpu()) if isinstance(backend, Computes) else ("", None)
