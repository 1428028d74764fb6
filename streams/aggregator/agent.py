"""The aggregator: joins the answers of workers by request and publishes one result for each."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Container, Mapping, Sequence

from schemas.codec import decode
from schemas.errors import Malformed
from schemas.ids import MAX_ID_BYTES
from schemas.messages import Checkpoint, Failure, JoinEvent, Partial, Plan
from streams import metrics
from streams.aggregator.background import Background
from streams.aggregator.effects import Effects, Place
from streams.aggregator.errands import Errands
from streams.aggregator.join import Dispatch, Join
from streams.aggregator.leavings import entries_of, unneeded_of
from streams.aggregator.limits import Counts, Limits
from streams.aggregator.oversized import Oversized
from streams.aggregator.publisher import Publisher
from streams.aggregator.table import Table
from streams.aggregator.takeover import Tenure, key_of
from streams.aggregator.telemetry import Telemetry
from streams.claims import NO_OBJECTS, Objects
from streams.delivery.clock import Clock
from streams.delivery.driver import Reader
from streams.delivery.lane import Lane
from streams.delivery.records import Batch, Output, Record
from streams.merge import BUILT_IN, Strategy
from streams.tracing import Tracer

CLOSE_S = 5.0


class Aggregator:
    """An agent over the lanes of `joins`.

    Its host calls `tick` about every 50 ms under the zombie rule (a process that was stopped must commit
    before a deadline timer speaks), awaits `close` at the end, and sets `replies` anew when the rules change.
    `objects` is where large payloads lie.
    """

    def __init__(
        self,
        reader: Reader,
        clock: Clock,
        *,
        strategies: Mapping[str, Strategy] = BUILT_IN,
        replies: Container[str] = frozenset(),
        limits: Limits | None = None,
        counts: Counts | None = None,
        errands: Errands | None = None,
        tracer: Tracer | None = None,
        cancelled: Container[str] = frozenset(),
        objects: Objects = NO_OBJECTS,
    ) -> None:
        self.counts = Counts() if counts is None else counts
        self._reader = reader
        self._clock = clock
        self._strategies = strategies
        self._telemetry = Telemetry(tracer)
        self._limits = Limits() if limits is None else limits
        self._cancelled = cancelled
        self._publisher = Publisher(replies, objects=objects)
        self._oversized = Oversized(objects, self._publisher, clock)
        self._tenures: dict[int, Tenure] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._errands = Errands(clock) if errands is None else errands
        self._unsent: deque[tuple[Tenure, Join, Dispatch]] = deque()
        self._examining = Background("examinations", self._examine)

    @property
    def replies(self) -> Container[str]:
        """The topics that a `reply_to` may name."""
        return self._publisher.replies

    @replies.setter
    def replies(self, topics: Container[str]) -> None:
        self._publisher.replies = topics

    @property
    def open_joins(self) -> int:
        """How many requests wait for their parts, over all lanes."""
        return sum(len(tenure.table) for tenure in self._tenures.values())

    def oldest(self, now: int) -> int:
        """The age in ms of the oldest open join, 0 without one."""
        oldest = (next(iter(tenure.table.joins.values()), None) for tenure in self._tenures.values())
        return max((now - join.plan.request.accepted for join in oldest if join is not None), default=0)

    @property
    def is_caught_up(self) -> bool:
        """Whether every lane has read what was left to it."""
        return all(tenure.is_live for tenure in self._tenures.values())

    def assigned(self, lane: Lane) -> None:
        """Take over `lane`. Must be called on the event loop: it may start to read `results`."""
        self.revoked_partition(lane.partition)
        table = Table(self._strategies, self._limits, self.counts, self._cancelled)
        now = self._clock.now()
        tenure = self._tenures[lane.partition] = Tenure(lane, table, now)
        if not tenure.has_backlog:
            tenure.begin(now, self._reader, self._clock, self.counts)

    def revoked(self, lane: Lane) -> None:
        """Drop all state of `lane`; of a later one of the same partition nothing."""
        tenure = self._tenures.get(lane.partition)
        if tenure is not None and tenure.lane is lane:
            self.revoked_partition(lane.partition)

    def revoked_partition(self, partition: int) -> None:
        """Drop all state of a partition, whatever its epoch."""
        tenure = self._tenures.pop(partition, None)
        task = tenure.end() if tenure is not None else None
        if task is not None:
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """Drop all lanes and wait for what still reads or writes."""
        for partition in list(self._tenures):
            self.revoked_partition(partition)
        self._unsent.clear()  # who comes after us sends them: no checkpoint calls them sent
        await self._examining.close(CLOSE_S)
        await self._oversized.close(CLOSE_S)
        await self._errands.close()
        if self._ending:
            await asyncio.wait(set(self._ending), timeout=CLOSE_S)

    async def handle(self, batch: Batch) -> None:
        """Take in the records of `batch`, and write what follows from them."""
        tenure = self._tenure(batch.lane)
        if tenure is None or not batch.records:
            return
        tenure.begin(batch.records[0].timestamp, self._reader, self._clock, self.counts)
        await tenure.has_room()
        now = self._clock.now()
        if tenure.is_live:
            self._telemetry.read(batch.records, now)
        effects = Effects()
        try:
            for record in batch.records:
                self._take(tenure, record, now, effects)
            tenure.heard(batch.records[-1].offset, now)
            tenure.try_activate(now)
        finally:
            # What was concluded so far must go out even where a later record of the batch breaks the handler.
            self._carry_out(tenure, now, effects)

    def tick(self, now: int) -> None:
        """Let time pass on every lane. Must be called on the event loop."""
        for tenure in list(self._tenures.values()):
            tenure.try_activate(now)
            effects = Effects()
            tenure.table.tick(now, effects)
            self._carry_out(tenure, now, effects)

    def cancel(self, key: str, now: int) -> None:
        """The caller of the scoped id `key` no longer wants the answer: the next tick gives it. What is
        answered stays answered. A plan that comes later is looked up in the `cancelled` of this aggregator.
        """
        for tenure in self._tenures.values():
            if tenure.table.cancel(key, now):
                return

    def refuse(self, record: Record, failure: Failure) -> Sequence[Output]:
        """The error result of the request that a bad record of `joins` belongs to; its join is closed."""
        key = key_of(record)
        tenure = self._tenures.get(record.partition)
        if key is None or tenure is None or len(key) > 2 * MAX_ID_BYTES:
            return ()
        now = self._clock.now()
        effects = Effects()
        tenure.table.refuse(key, failure, now, effects)
        outputs = self._outputs(tenure, now, effects)
        self._leave(effects)
        if not effects.finished:
            return outputs
        tenure.lane.settle(effects.finished, outputs)
        return ()

    def _tenure(self, lane: Lane) -> Tenure | None:
        tenure = self._tenures.get(lane.partition)
        return tenure if tenure is not None and tenure.lane is lane and lane.alive else None

    def _take(self, tenure: Tenure, record: Record, now: int, effects: Effects) -> None:
        value = record.value or b""
        place = Place(record.offset, record.timestamp, len(value))
        table, settled = tenure.table, len(effects.finished)
        try:
            event: Plan | Partial | Checkpoint = decode(value, JoinEvent)
            if isinstance(event, Partial):
                table.partial(event, place, now, effects)
            elif isinstance(event, Plan):
                table.plan(event, place, now, effects)
            else:
                table.checkpoint(event, place, now, effects)
        except Malformed as error:
            tenure.fail(record, Failure(code=error.code, message=str(error)))
            return
        if record.offset not in effects.finished[settled:]:
            tenure.lane.absorb(record.offset)

    def _carry_out(self, tenure: Tenure, now: int, effects: Effects) -> None:
        outputs = self._outputs(tenure, now, effects)
        if effects.oversized:
            tenure.lane.settle((), outputs)
            self._oversized.write(tenure.lane, effects.finished, effects.oversized)
        elif effects.finished or outputs:
            tenure.lane.settle(effects.finished, outputs)
        self._leave(effects)

    def _leave(self, effects: Effects) -> None:
        """What is of use to others once the answers are out."""
        errands = self._errands
        if errands.keeps:
            for join, result in effects.closed:
                errands.keep(entries_of(join, result))
        if errands.releases:
            for join, _ in effects.closed:
                errands.release(unneeded_of(join))
            errands.release(effects.unneeded)

    def _wants(self, tenure: Tenure, join: Join) -> bool:
        return not join.is_over and self._tenure(tenure.lane) is tenure

    async def _examine(self) -> None:
        """Send the dispatches that must be examined first, and give the loop a turn after each."""
        while self._unsent:
            tenure, join, dispatch = self._unsent.popleft()
            if not self._wants(tenure, join):
                continue
            found = await self._publisher.examined(join, dispatch)
            join.unsent -= {(dispatch.step, dispatch.attempt)}
            if self._wants(tenure, join):
                effects = Effects()
                output = self._sent(tenure, join, dispatch, found, effects)
                if output is not None:
                    tenure.lane.settle((), [output])
                self._carry_out(tenure, self._clock.now(), effects)
            await asyncio.sleep(0)

    def _subtask(self, tenure: Tenure, join: Join, dispatch: Dispatch, effects: Effects) -> Output | None:
        """The record of a dispatch; where it cannot be sent, `effects` has what follows."""
        return self._sent(tenure, join, dispatch, self._publisher.subtask(join, dispatch), effects)

    def _sent(
        self, tenure: Tenure, join: Join, dispatch: Dispatch, found: Output | Failure, effects: Effects
    ) -> Output | None:
        if isinstance(found, Failure):
            tenure.table.attempt_failed(join, dispatch, found, self._clock.now(), effects)
            return None
        self.counts.dispatches += 1
        return found

    def _outputs(self, tenure: Tenure, now: int, effects: Effects) -> list[Output]:
        """The records of `effects`; a dispatch that cannot be sent may cause more of them."""
        outputs: list[Output] = []
        for join, dispatch in effects.dispatches:
            if join.is_over:
                continue  # it was closed further down the batch, and what the attempt may cost is free again
            if self._publisher.must_examine(join, dispatch):
                join.unsent |= {(dispatch.step, dispatch.attempt)}
                self._unsent.append((tenure, join, dispatch))
                self._examining.wake()
                continue
            output = self._subtask(tenure, join, dispatch, effects)
            if output is not None:
                outputs.append(output)
        for join in effects.checkpoints:
            written = self._publisher.checkpoint(join, tenure.lane.partition) if not join.is_over else None
            if written is not None:
                tenure.table.written_again(join, effects)
                outputs.append(written)
            elif not join.is_over:
                self.counts.degraded += 1
        self._telemetry.answered(effects, now)
        for answer in effects.answers:
            for kind in answer.result.degraded:
                metrics.DEGRADED.labels(kind).inc()
            if self._publisher.is_oversized(answer):
                effects.oversized.append(answer)
            else:
                outputs.extend(self._publisher.answer(answer, tenure.lane.partition))
        return outputs
