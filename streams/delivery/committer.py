"""The committer: watermarks to the group, and with them the proof that the partitions are still ours."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from streams import metrics
from streams.delivery.driver import Source
from streams.delivery.errors import NotOwner, Unavailable
from streams.delivery.lane import Lane
from streams.delivery.lease import Lease
from streams.delivery.records import Committed, Place
from streams.delivery.suspects import Note

if TYPE_CHECKING:
    from streams.delivery.inlet import InletSettings

log = logging.getLogger(__name__)


class Committer:
    """Commits the lanes' watermarks: when they moved, and once a second in any case."""

    def __init__(self, source: Source, lanes: Mapping[Place, Lane], settings: InletSettings) -> None:
        self._source = source
        self._lanes = lanes
        self._settings = settings
        self._last: dict[Place, tuple[int, Committed]] = {}
        self._lock = asyncio.Lock()
        self.lease = Lease(settings.session_s, time.monotonic())

    async def run(self) -> None:
        """Commit until cancelled.

        Raises:
            TwinTookOver: another process has our static id.
        """
        proved = 0.0
        while True:
            await asyncio.sleep(self._settings.commit_every_s)
            due = time.monotonic() - proved >= self._settings.prove_every_s
            if await self.commit(force=due):
                proved = time.monotonic()

    async def commit(self, *, force: bool = False) -> bool:
        """Commit what moved (with `force` everything). False where nothing was due or it was not taken."""
        notes = {}
        for place, lane in self._lanes.items():
            offer = Committed(lane.window.watermark, lane.note().text())
            if force or self._last.get(place) != (lane.epoch, offer):
                notes[place] = (lane.epoch, offer)
        if not notes:
            return False
        try:
            await self._send(notes)
        except NotOwner as error:
            # A rebalance is on its way; its callback drops what we hold.
            metrics.COMMITS.labels("not_owner").inc()
            log.info("%s: a commit came too late: %s", self._settings.group, error)
            return False
        except Unavailable as error:
            metrics.COMMITS.labels("unavailable").inc()
            log.warning("%s: no commit: %s", self._settings.group, error)
            return False
        return True

    async def mark(self, lane: Lane) -> None:
        """Commit the lane's note before records are handed out; retried while the lane lives."""
        while lane.alive:
            offer = Committed(lane.window.watermark, lane.note().text())
            try:
                await self._send({lane.place: (lane.epoch, offer)})
            except NotOwner:
                # The revocation that follows cancels us.
                await asyncio.sleep(self._settings.commit_every_s)
            except Unavailable as error:
                log.warning("%s: no commit yet: %s", self._settings.group, error)
            else:
                return

    async def hand_over(self, lanes: Sequence[Lane]) -> None:
        """The last commit: a drained lane is handed over clean, another with an ordinary note.

        Raises:
            NotOwner, Unavailable, TwinTookOver: it was not taken.
        """
        notes = {}
        for lane in lanes:
            note = Note(clean=True) if lane.is_drained() else lane.note()
            notes[lane.place] = (lane.epoch, Committed(lane.window.watermark, note.text()))
        await self._send(notes)

    async def _send(self, notes: Mapping[Place, tuple[int, Committed]]) -> None:
        async with self._lock:
            sent = time.monotonic()
            await self._source.commit(
                {place: offer for place, (_, offer) in notes.items()}, self._settings.wait_s
            )
            self.lease.prove(sent)
            self._last.update(notes)
            metrics.COMMITS.labels("ok").inc()
