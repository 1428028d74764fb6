"""A lane's holder and its takeover: what the owner before us left is read before anything is concluded."""

from __future__ import annotations

import asyncio
import logging

from schemas.codec import decode
from schemas.errors import Malformed
from schemas.messages import Failure, Result
from schemas.topics import RESULTS
from streams.aggregator.effects import Effects
from streams.aggregator.limits import Counts
from streams.aggregator.table import Table
from streams.delivery.clock import Clock
from streams.delivery.driver import Reader
from streams.delivery.lane import Lane
from streams.delivery.records import Record

LOOK_BACK_MS = 15_000
"""How much earlier than the first open record `results` is read: a router that died is succeeded after 6 s,
and its successor plans again what may be answered already; and the clocks of brokers differ."""
QUIET_MS = 5_000
"""After so long without a record the backlog counts as read: the log may end in a gap."""
PATIENCE_S = 10.0
"""How long `results` may say nothing, and how long its reading is tried anew."""
RETRY_S = 0.5
log = logging.getLogger(__name__)


class Tenure:
    """One lane while it is ours. Until `is_live`, its table only absorbs.

    Also where nothing was left to it: a router that died together with the owner before us plans again what
    is answered, and its first plan may come before `results` is read.
    """

    def __init__(self, lane: Lane, table: Table, now: int) -> None:
        self.lane = lane
        self.table = table
        self.is_live = False
        self.table.absorbing = True
        self.table.may_shed = False
        self._heard = now
        self._is_held_up = False
        self._joins_read = lane.start >= lane.end
        self._unreadable: list[tuple[Record, Failure]] = []
        self._reading: asyncio.Task[None] | None = None

    @property
    def has_backlog(self) -> bool:
        """Whether records of the owner before us are still to be read."""
        return not self._joins_read

    def begin(self, at: int, reader: Reader, clock: Clock, counts: Counts) -> None:
        """Start to read `results`, once: `at` is the time of the first record of the backlog, or where there
        is none that of the assignment."""
        if self._reading is not None:
            return
        since = max(0, at - LOOK_BACK_MS)
        self._reading = asyncio.create_task(
            self._read(reader, since, clock, counts), name=f"results-{self.lane.partition}"
        )

    def heard(self, offset: int, now: int) -> None:
        """The record at `offset` was taken in."""
        self._heard = now
        if offset + 1 >= self.lane.end:
            self._joins_read = True

    def fail(self, record: Record, failure: Failure) -> None:
        """Dead-letter `record` and fail its request: at once, or when it is known whether that is
        answered."""
        if self.is_live:
            self.lane.fail(record, failure)
        else:
            self._unreadable.append((record, failure))
            self.lane.absorb(record.offset)

    async def has_room(self) -> None:
        """Wait, where the table is full, until it is known what was answered and the rest may be shed."""
        if self.is_live or not self.table.is_full or self._reading is None or self._reading.done():
            return
        self._is_held_up = True
        try:
            await asyncio.wait({self._reading}, timeout=2 * PATIENCE_S)
        finally:
            self._is_held_up = False

    def try_activate(self, now: int) -> None:
        """Go live once joins and results are read. Before the first record of a backlog there is nothing to
        conclude from."""
        if self.is_live or self._is_held_up or self._reading is None:
            return
        self._joins_read = self._joins_read or now - self._heard >= QUIET_MS
        if self._joins_read and self._reading.done():
            self.is_live = True
            self.table.activate(now)
            for record, failure in self._unreadable:
                self.lane.fail(record, failure)
            self._unreadable.clear()

    def end(self) -> asyncio.Task[None] | None:
        """Stop reading; the task to wait for, where there is one."""
        if self._reading is None or self._reading.done():
            return None
        self._reading.cancel()
        return self._reading

    async def _read(self, reader: Reader, since: int, clock: Clock, counts: Counts) -> None:
        give_up = clock.now() + int(PATIENCE_S * 1000)
        while True:
            try:
                await self._read_once(reader, since, clock)
                break
            except Exception as error:  # noqa: BLE001 - any driver stands behind the reader
                log.warning("results/%d cannot be read: %s", self.lane.partition, type(error).__name__)
            if clock.now() >= give_up:
                # Answering twice is harmless (the first result is the answer); staying silent is not.
                counts.degraded += 1
                log.error("results/%d stays unread; requests may be answered again", self.lane.partition)
                break
            await asyncio.sleep(RETRY_S)
        self.table.may_shed = True

    async def _read_once(self, reader: Reader, since: int, clock: Clock) -> None:
        stream = aiter(reader.read(RESULTS, self.lane.partition, since))
        while True:
            async with asyncio.timeout(PATIENCE_S):
                records = await anext(stream, None)
            if records is None:
                return
            effects = Effects()
            for record in records:
                self._absorb(record, clock.now(), effects)
            if effects.finished:
                self.lane.settle(effects.finished)

    def _absorb(self, record: Record, now: int, effects: Effects) -> None:
        key = key_of(record)
        if key is None:
            return
        try:
            digest = decode(record.value or b"", Result).digest
        except Malformed:
            digest = None  # unreadable to us, but its request has its answer
        self.table.answered_before(key, digest, now, effects)


def key_of(record: Record) -> str | None:
    """The scoped id that a record is keyed by; None where it has none."""
    try:
        return record.key.decode() if record.key else None
    except UnicodeDecodeError:
        return None
