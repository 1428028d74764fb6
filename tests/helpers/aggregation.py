"""A log, lanes and a clock in memory, in which an aggregator can live, crash and be succeeded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from schemas.codec import decode, encode
from schemas.ids import scoped, subtask_id
from schemas.messages import (
    Attempt,
    Checkpoint,
    Failure,
    Message,
    Partial,
    Plan,
    RequestInfo,
    Result,
    Step,
    Subtask,
    Verdict,
)
from streams.aggregator import Aggregator, Limits
from streams.delivery.records import Batch, Cleared, Outgoing, Output
from streams.delivery.window import Window

T0 = 1_000_000
LOCAL = Attempt(side="local", triggers=("first",), capability="nlp/intent")
CLOUD = Attempt(side="cloud", triggers=("weak", "failed", "silent"), capability="nlp/intent")
CLOUD_FIRST = Attempt(side="cloud", triggers=("first",), capability="nlp/intent")
LOCAL_LAST = Attempt(side="local", triggers=("failed", "silent"), capability="nlp/intent")


def step(name: str = "s", *attempts: Attempt, **fields) -> Step:
    return Step(
        name=name,
        capability="nlp/intent",
        attempts=attempts or (LOCAL, CLOUD),
        **{"threshold": 0.9, **fields},
    )


def plan(name: str = "r", *steps: Step, **fields) -> Plan:
    request = {"deadline": T0 + 10_000, "accepted": T0, "digest": "d", "tenant": None}
    request |= {key: fields.pop(key) for key in list(fields) if key in RequestInfo.__struct_fields__}
    return Plan(
        request=RequestInfo(id=name, **request),
        steps=steps or (step(),),
        **{"rules": "v1", "inputs": {"text": "hello"}, **fields},
    )


def partial(of: Plan | str, name: str = "s", side: str = "local", attempt: int = 0, **fields) -> Partial:
    """A good answer, unless `confidence`, `error` or `output` say otherwise."""
    request = of if isinstance(of, str) else scoped(of.request.tenant, of.request.id)
    if fields.get("error") is True:
        fields["error"] = Failure(code="backend_error", message="it broke")
    return Partial(
        subtask=subtask_id(request, name, side, attempt),
        deadline=T0 + 10_000,
        **{"output": f"{name}/{side}/{attempt}", "confidence": 0.95, **fields},
    )


@dataclass(frozen=True)
class Entry:
    """A record of the log."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]] = ()


@dataclass
class FakeClock:
    time: int = T0

    def now(self) -> int:
        return self.time


@dataclass
class World:
    """The log of one partition of `joins` and `results`, and what else was written."""

    clock: FakeClock = field(default_factory=FakeClock)
    joins: list[Entry] = field(default_factory=list)
    results: list[Entry] = field(default_factory=list)
    others: list[Outgoing] = field(default_factory=list)
    committed: int = 0

    def append(self, message: Message | bytes, key: str | None = None) -> None:
        """Append to `joins`."""
        value = message if isinstance(message, bytes) else encode(message)
        self.write(Outgoing("joins", None if key is None else key.encode(), value))

    def write(self, record: Outgoing) -> None:
        log = {"joins": self.joins, "results": self.results}.get(record.topic)
        if log is None:
            self.others.append(record)
        else:
            log.append(
                Entry(record.topic, 0, len(log), self.clock.time, record.key, record.value, record.headers)
            )

    def read(self, topic: str, partition: int, since_ms: int) -> AsyncIterator[list[Entry]]:
        found = [entry for entry in self.results if entry.timestamp >= since_ms]

        async def batches() -> AsyncIterator[list[Entry]]:
            for start in range(0, len(found), 3):
                yield found[start : start + 3]

        return batches()

    def answers(self, name: str | None = None) -> list[Result]:
        found = [decode(entry.value, Result) for entry in self.results]
        return [result for result in found if name is None or result.id == name]

    def subtasks(self) -> list[Subtask]:
        return [
            decode(record.value, Subtask)
            for record in self.others
            if record.topic.startswith(("local.", "cloud."))
        ]

    def checkpoints(self) -> list[Checkpoint]:
        found = []
        for entry in self.joins:
            try:
                found.append(decode(entry.value, Checkpoint))
            except ValueError:
                continue
        return found


class FakeLane:
    """A lane whose writes wait for `acknowledge`."""

    topic, partition = "joins", 0

    def __init__(self, world: World, epoch: int, refuse) -> None:
        self.world, self.epoch, self.alive = world, epoch, True
        self.start, self.end = world.committed, len(world.joins)
        self.window = Window(self.start)
        self.waiting: list[tuple[tuple[int, ...], list[Outgoing]]] = []
        self._refuse = refuse

    def settle(self, offsets: Iterable[int], outputs: Sequence[Output] = ()) -> None:
        if self.alive:
            records = [output.record if isinstance(output, Cleared) else output for output in outputs]
            self.waiting.append((tuple(offsets), records))

    def absorb(self, offset: int) -> None:
        if self.alive:
            self.window.absorb(offset)

    def fail(self, record: Entry, failure: Failure) -> None:
        letter = Outgoing("dead-letters", record.key, record.value or b"")
        self.settle((record.offset,), [letter, *self._refuse(record, failure)])

    def acknowledge(self) -> None:
        """All writes reach the log, and what caused them is finished and committed."""
        waiting, self.waiting = self.waiting, []
        for offsets, records in waiting:
            for record in records:
                self.world.write(record)
            for offset in offsets:
                self.window.finish(offset)
        self.world.committed = self.window.watermark


class Host:
    """One aggregator after another on the one partition."""

    def __init__(self, world: World, limits: Limits | None = None, replies=frozenset(), **options) -> None:
        self.world = world
        self._options = {"limits": limits, "replies": replies, **options}
        self._epoch = 0
        self._start()

    def _start(self) -> None:
        self._epoch += 1
        self.aggregator = Aggregator(self.world, self.world.clock, **self._options)
        self.lane = FakeLane(self.world, self._epoch, self.aggregator.refuse)
        self.aggregator.assigned(self.lane)
        self.position = self.lane.start

    async def read(self, most: int = 1_000) -> None:
        """Hand out what stands in `joins`."""
        await self._begun()
        entries = self.world.joins[self.position : self.position + most]
        for entry in entries:
            self.lane.window.take(entry.offset, len(entry.value or b""))
        self.position += len(entries)
        if entries:
            await self.aggregator.handle(Batch(self.lane, entries))
            await self.rest()

    async def _begun(self) -> None:
        """Where nothing was left to it, an owner has read `results` before anybody asks."""
        for tenure in self.aggregator._tenures.values():
            if not tenure.is_live and not tenure.has_backlog and tenure._reading is not None:
                await asyncio.wait({tenure._reading})
                tenure.try_activate(self.world.clock.now())

    async def rest(self) -> None:
        """Let end what goes on in the background."""
        await self.aggregator._examining.rest()
        await self.aggregator._oversized.rest()
        await self.aggregator._errands.rest()

    async def caught_up(self) -> None:
        """Read all there is, and let a takeover come to its end."""
        await self.read()
        for tenure in self.aggregator._tenures.values():
            if tenure._reading is not None:
                await tenure._reading
        self.aggregator.tick(self.world.clock.now())
        await self.rest()

    async def settled(self) -> None:
        """Catch up, acknowledge and read back until nothing moves."""
        for _ in range(10):
            await self.caught_up()
            if not self.lane.waiting and self.position == len(self.world.joins):
                return
            self.lane.acknowledge()
        raise AssertionError("it never comes to rest")

    async def pass_time(self, ms: int) -> None:
        self.world.clock.time += ms
        await self.settled()

    async def crash(self, *, written: bool = False) -> None:
        """Die and be succeeded. Unacknowledged writes are lost or, where `written`, stand in the log."""
        if written:
            for _, records in self.lane.waiting:
                for record in records:
                    self.world.write(record)
        self.lane.alive = False
        self.aggregator.revoked(self.lane)
        await self.aggregator.close()
        self._start()


def high(of: Plan) -> Plan:
    """The same plan under a verdict that keeps it from the cloud."""
    request = msgspec.structs.replace(of.request, privacy=Verdict(level="high"))
    return msgspec.structs.replace(of, request=request)
