"""Any backend with the calibration of its card: confidences are mapped, labels never change."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from schemas.cards import Card
from schemas.rules import Rules
from workers.backends import (
    Answer,
    Backend,
    Call,
    Computes,
    OneByOne,
    Reachable,
    RemoteBackend,
    Row,
    RulesFollower,
)
from workers.errors import LoadError
from workers.models.cards import calibrator_of, card_path, read_card, statement_of
from workers.models.maps import Calibrator

log = logging.getLogger(__name__)
LOOK_S = 2.0
"""How often the card's file is looked at."""


class Calibrated:
    """`backend`, its confidences mapped by the calibration in `place` (a card or model folder).

    A card that changes is taken up while the worker runs, within LOOK_S of the next batch or heartbeat: by
    its time and size, not by SIGHUP, which stops a role here. A card that cannot be read then is logged, and
    the last good calibration stays.

    Raises:
        LoadError: no such card, or a backend that asks elsewhere: that is for CalibratedRemote.
    """

    def __init__(
        self, backend: Backend, place: str | Path, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if isinstance(backend, RemoteBackend) and not isinstance(self, CalibratedRemote):
            # Wrapped so it would lose the subtasks that it is told, and with them its idempotency.
            raise LoadError(f"{backend.card.capability} asks elsewhere: wrap it in CalibratedRemote")
        self._backend = backend
        self._path = card_path(place)
        self._clock = clock
        self._looked = clock()
        self._mark = self._seen()
        self._calibrator, self._card = self._read()

    @property
    def card(self) -> Card:
        self._look()
        return self._card

    @property
    def threads(self) -> int:
        """How many threads the backend may be called in."""
        return int(getattr(self._backend, "threads", 1))

    @property
    def provider(self) -> str:
        """What computes."""
        return str(getattr(self._backend, "provider", ""))

    @property
    def waits_for(self) -> str:
        """What the backend still waits for."""
        return str(getattr(self._backend, "waits_for", ""))

    def reachable(self) -> bool | None:
        """Whether the service that the backend asks is there."""
        return self._backend.reachable() if isinstance(self._backend, Reachable) else None

    def gpu(self) -> float | None:
        """How busy its GPU is."""
        return self._backend.gpu() if isinstance(self._backend, Computes) else None

    @property
    def one_by_one(self) -> bool:
        """Whether the backend runs its rows one after the other."""
        return isinstance(self._backend, OneByOne) and self._backend.one_by_one

    async def load(self) -> None:
        await self._backend.load()

    def kin(self, row: Row) -> Hashable:
        return self._backend.kin(row)

    def infer(self, rows: Sequence[Row]) -> list[Answer]:
        self._look()
        calibrator = self._calibrator
        return [_mapped(answer, calibrator) for answer in self._backend.infer(rows)]

    def close(self) -> None:
        self._backend.close()

    def _read(self) -> tuple[Calibrator, Card]:
        """Raises LoadError."""
        card = read_card(self._path)
        calibrator, stated = calibrator_of(card), statement_of(card)
        own = self._backend.card
        return calibrator, msgspec.structs.replace(
            own, calibrated=own.calibrated or stated is not None, calibration=stated
        )

    def _look(self) -> None:
        now = self._clock()
        if now - self._looked < LOOK_S:
            return
        self._looked = now
        mark = self._seen()
        if mark is None or mark == self._mark:
            return
        self._mark = mark
        try:
            self._calibrator, self._card = self._read()
        except LoadError as error:
            log.warning("%s; the calibration of before stays", error)
        else:
            log.info("%s: calibration taken from %s", self._card.capability, self._path)

    def _seen(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


class CalibratedRemote(Calibrated):
    """As `Calibrated`, of a backend that asks elsewhere, such as a chat model with log-probabilities."""

    def __init__(
        self, backend: RemoteBackend, place: str | Path, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(backend, place, clock=clock)
        self._remote = backend

    def infer_calls(self, rows: Sequence[Row], calls: Sequence[Call]) -> list[Answer]:
        self._look()
        calibrator = self._calibrator
        return [_mapped(answer, calibrator) for answer in self._remote.infer_calls(rows, calls)]

    def prepare(self, rules: Rules) -> Callable[[], None]:
        """As the backend itself; nothing where it does not read the rules."""
        return self._remote.prepare(rules) if isinstance(self._remote, RulesFollower) else lambda: None


def _mapped(answer: Answer, calibrator: Calibrator) -> Answer:
    if not calibrator.maps or answer.confidence is None or answer.error is not None:
        return answer
    return replace(answer, confidence=round(min(1.0, max(0.0, calibrator(answer.confidence))), 6))
