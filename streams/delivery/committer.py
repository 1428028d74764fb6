"""The committer: watermarks to the group, and with them the proof that the partitions are still ours."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence

from streams import metrics
from streams.delivery.driver import Source
from streams.delivery.errors import NotOwner, Unavailable
from streams.delivery.lane import Lane
from streams.delivery.lease import Lease
from streams.delivery.records import Committed, Place
from streams.delivery.settings import InletSettings

log = logging.getLogger(__name__)

Offers = dict[Place, tuple[int, Committed]]


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
            DeliveryError: the consumer ended for good.
        """
        proved = 0.0
        while True:
            await asyncio.sleep(self._settings.commit_every_s)
            # Between a revocation and the next assignment nobody polls, and nothing else would say so.
            self._source.check()
            due = time.monotonic() - proved >= self._settings.prove_every_s
            if await self.commit(force=due):
                proved = time.monotonic()

    async def commit(self, *, force: bool = False) -> bool:
        """Commit what moved (with `force` everything). False where nothing was due or it was not taken."""

        def moved() -> Offers:
            offers = {place: _offer(lane) for place, lane in self._lanes.items()}
            return {place: it for place, it in offers.items() if force or self._last.get(place) != it}

        try:
            return await self._send(moved)
        except NotOwner as error:
            # A rebalance is on its way; its callback drops what we hold.
            metrics.COMMITS.labels("not_owner").inc()
            log.info("%s: a commit came too late: %s", self._settings.group, error)
            return False
        except Unavailable as error:
            metrics.COMMITS.labels("unavailable").inc()
            log.warning("%s: no commit: %s", self._settings.group, error)
            return False

    async def mark(self, lane: Lane) -> None:
        """Commit the lane's note before records are handed out; retried while the lane lives."""
        while lane.alive:
            try:
                await self._send(lambda: {lane.place: _offer(lane)})
            except NotOwner:
                # The revocation that follows cancels us.
                await asyncio.sleep(self._settings.commit_every_s)
            except Unavailable as error:
                log.warning("%s: no commit yet: %s", self._settings.group, error)
                await asyncio.sleep(self._settings.commit_every_s)
            else:
                return

    async def hand_over(self, lanes: Sequence[Lane], wait_s: float) -> None:
        """The last commit of `lanes`, by a process that lives: it accuses no record.

        Raises:
            NotOwner, Unavailable, TwinTookOver: it was not taken.
        """

        def parting() -> Offers:
            return {
                lane.place: (lane.epoch, Committed(lane.window.watermark, lane.parting_note().text()))
                for lane in lanes
                if lane.alive
            }

        try:
            async with asyncio.timeout(wait_s):
                await self._send(parting)
        except TimeoutError as error:
            raise Unavailable(f"no answer to the last commit within {wait_s:g} s") from error

    async def _send(self, offers: Callable[[], Offers]) -> bool:
        async with self._lock:
            # Read under the lock: a note from before a hand-over would undo it.
            notes = offers()
            if not notes:
                return False
            sent = time.monotonic()
            await self._source.commit(
                {place: offer for place, (_, offer) in notes.items()}, self._settings.wait_s
            )
            self.lease.prove(sent)
            self._last.update(notes)
            metrics.COMMITS.labels("ok").inc()
            return True


def _offer(lane: Lane) -> tuple[int, Committed]:
    return lane.epoch, Committed(lane.window.watermark, lane.note().text())
