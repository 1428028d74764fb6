"""Handing out: as batches in the usual case, one record at a time where a record is suspected of killing
its process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from schemas.messages import Failure
from streams.delivery.committer import Committer
from streams.delivery.isolation import Isolation
from streams.delivery.lane import Lane
from streams.delivery.records import Batch, Record

POLL_S = 0.002


class Handout:
    """Gives records to the agent, and writes the notes that find a killer."""

    def __init__(
        self, deliver: Callable[[Batch], Awaitable[None]], committer: Committer, isolation: Isolation
    ) -> None:
        self._deliver = deliver
        self._committer = committer
        self._isolation = isolation

    async def give(self, lane: Lane, records: list[Record]) -> None:
        """Hand out `records` of `lane`, which took them already."""
        records = self._without_condemned(lane, records)
        if not records:
            return
        if not lane.handed_out and records[-1].offset >= lane.suspect:
            # From now on an unclean end counts against this start.
            lane.handed_out = True
            await self._committer.mark(lane)
        # What a process before us handled without dying is no suspect.
        known = [record for record in records if not lane.careful or record.offset < lane.suspect]
        if known:
            await self._isolation.opened()
            await self._hand(lane, known)
        for record in records[len(known) :]:
            await self._give_alone(lane, record)
            if record.offset + 1 >= lane.suspects_end:
                lane.careful = False

    async def _give_alone(self, lane: Lane, record: Record) -> None:
        if record.offset == lane.suspicion.guilty:
            lane.given = record.offset
            lane.fail(
                record, Failure(code="killed_its_process", message="its handler ended the process each time")
            )
            await self._until(lane, lane.is_drained)
            lane.condemned.add(record.offset)
            return
        async with self._isolation.alone():
            # What dies must die of this record and of no other, or an innocent one would be condemned.
            await self._until(lane, lambda: not self._isolation.is_busy())
            lane.alone = record.offset
            try:
                await self._committer.mark(lane)
                await self._hand(lane, [record])
                await self._until(lane, lane.is_drained)
            finally:
                lane.alone = -1
            # Before any other record runs, of this lane or another: its deed must not accuse this one.
            await self._committer.mark(lane)

    def _without_condemned(self, lane: Lane, records: list[Record]) -> list[Record]:
        if not lane.condemned:
            return records
        # Dead-lettered and answered by an owner before us.
        lane.settle(record.offset for record in records if record.offset in lane.condemned)
        return [record for record in records if lane.window.is_waiting(record.offset)]

    async def _hand(self, lane: Lane, records: list[Record]) -> None:
        before, lane.given = lane.given, records[-1].offset
        try:
            await self._deliver(Batch(lane, records))
        except asyncio.CancelledError:
            # It never reached the agent; a drain must not wait for it.
            lane.given = before
            raise

    async def _until(self, lane: Lane, holds: Callable[[], bool]) -> None:
        # Ends with the lane, whose revocation cancels the polling task; the watchdog ends a process that
        # waits too long.
        while lane.alive and not holds():  # noqa: ASYNC110 - windows are pure and know no events
            await asyncio.sleep(POLL_S)
