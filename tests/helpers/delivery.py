"""A log, a group and a broker in memory, held to the same contracts as the real drivers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from schemas.messages import Failure
from streams.delivery import (
    Batch,
    BrokerClock,
    Committed,
    DeliveryError,
    Inlet,
    InletSettings,
    Isolation,
    Lane,
    NotOwner,
    Outgoing,
    Outlet,
    Output,
    Place,
    Record,
    Runner,
    Unavailable,
    Undeliverable,
)


@dataclass(frozen=True)
class LogRecord:
    topic: str
    partition: int
    offset: int
    timestamp: int = 1_000
    key: bytes | None = None
    value: bytes | None = None
    headers: Sequence[tuple[str, bytes]] = ()


class FakeSink:
    """Topics in memory. Faults are told to it: `silent` (no answer), `refused` values, `limit` per batch."""

    def __init__(self, topics: Mapping[str, int] | None = None, limit: int = 100) -> None:
        self.topics = dict(topics or {})
        self.limit = limit
        self.log: dict[Place, list[Outgoing]] = {}
        self.refused: set[bytes] = set()
        self.silent = 0
        self.takes_silently = False
        self.down = False
        self.broken: Exception | None = None
        self.replaced = 0
        self.asked = 0
        self.started = False
        self.gate = asyncio.Event()
        self.gate.set()

    async def start(self) -> None:
        if self.down:
            raise Unavailable("no broker")
        self.started = True

    async def partitions(self, topic: str, wait_s: float) -> int:
        self.asked += 1
        await asyncio.sleep(0)
        if self.down:
            raise Unavailable("no broker")
        return self.topics.get(topic, 0)

    async def write(self, place: Place, records: Sequence[Outgoing], wait_s: float) -> tuple[int, int]:
        await self.gate.wait()
        await asyncio.sleep(0)
        if self.broken is not None:
            raise self.broken
        taken = list(records[: self.limit])
        if not self.started or self.down or self.topics.get(place.topic, 0) <= place.partition:
            raise Unavailable("no answer")
        if self.silent > 0:
            self.silent -= 1
            if self.takes_silently:
                self.log.setdefault(place, []).extend(taken)
            self.started = False
            raise Unavailable("no answer in time")
        if any(record.value in self.refused for record in taken):
            raise Undeliverable("too_large", "too large")
        self.log.setdefault(place, []).extend(taken)
        return len(taken), 1_000

    async def replace(self) -> None:
        self.replaced += 1
        self.started = False
        await self.start()

    async def stop(self, wait_s: float) -> None:
        self.started = False

    def values(self, topic: str, partition: int = 0) -> list[bytes]:
        return [record.value for record in self.log.get(Place(topic, partition), ())]


@dataclass
class FakeGroup:
    """A topic's partitions and what the group committed."""

    topic: str = "in"
    partitions: int = 1
    logs: dict[Place, list[LogRecord]] = field(default_factory=dict)
    commits: dict[Place, Committed] = field(default_factory=dict)
    first: dict[Place, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number in range(self.partitions):
            self.logs.setdefault(Place(self.topic, number), [])

    @property
    def places(self) -> frozenset[Place]:
        return frozenset(self.logs)

    def append(self, *values: bytes, partition: int = 0) -> None:
        log = self.logs[Place(self.topic, partition)]
        for value in values:
            log.append(LogRecord(self.topic, partition, len(log), 1_000, value, value))


class FakeSource:
    """One member of a FakeGroup; `rebalance` and `die` are done to it."""

    def __init__(self, group: FakeGroup) -> None:
        self.group = group
        self.position: dict[Place, int] = {}
        self.owned: frozenset[Place] = frozenset()
        self.paused: set[Place] = set()
        self.pauses: list[Place] = []
        self.commits: list[Mapping[Place, Committed]] = []
        self.polls = 0
        self.fault: Exception | None = None
        self.ended: DeliveryError | None = None
        self.unavailable = False
        self.slow_commit_s = 0.0
        self.left = False
        self.stopped = False
        self._listener = None

    async def start(self, listener) -> None:
        self._listener = listener
        await self.rebalance(self.group.places)

    async def rebalance(self, places: Iterable[Place]) -> None:
        await self._listener.revoked(self.owned)
        self.owned = frozenset(places)
        # aiokafka makes new states at each assignment.
        self.paused.clear()
        self.position = {place: max(0, self.group.commits.get(place, (0,))[0]) for place in self.owned}
        await self._listener.assigned(self.owned)

    async def poll(self, wait_s: float, most: int) -> Mapping[Place, Sequence[Record]]:
        self.polls += 1
        found: dict[Place, Sequence[Record]] = {}
        for place in sorted(self.owned - self.paused):
            at = self.position[place]
            if records := self.group.logs[place][at : at + most]:
                found[place] = records
                self.position[place] = at + len(records)
                most -= len(records)
            if most <= 0:
                break
        await asyncio.sleep(0 if found else min(wait_s, 0.002))
        return found

    async def commit(self, offsets: Mapping[Place, Committed], wait_s: float) -> None:
        if self.slow_commit_s:
            await asyncio.sleep(self.slow_commit_s)
        await asyncio.sleep(0)
        if self.fault is not None:
            raise self.fault
        if not set(offsets) <= self.owned:
            raise NotOwner("not assigned")
        self.commits.append(dict(offsets))
        self.group.commits.update(offsets)

    def check(self) -> None:
        if self.ended is not None:
            raise self.ended

    async def committed(self, places: Iterable[Place], wait_s: float) -> Mapping[Place, Committed]:
        await asyncio.sleep(0)
        if self.unavailable:
            raise Unavailable("no answer")
        return {place: self.group.commits.get(place, Committed(-1, "")) for place in places}

    async def ends(self, places: Iterable[Place], wait_s: float) -> Mapping[Place, int]:
        await asyncio.sleep(0)
        return {place: len(self.group.logs[place]) for place in places}

    async def beginnings(self, places: Iterable[Place], wait_s: float) -> Mapping[Place, int]:
        await asyncio.sleep(0)
        return {place: self.group.first.get(place, 0) for place in places}

    def seek(self, place: Place, offset: int) -> None:
        self.position[place] = offset

    def pause(self, places: Iterable[Place]) -> None:
        for place in places:
            self.paused.add(place)
            self.pauses.append(place)

    def resume(self, places: Iterable[Place]) -> None:
        self.paused.difference_update(places)

    async def leave(self) -> None:
        self.left = True

    async def stop(self, wait_s: float) -> None:
        self.stopped = True


class Keeper:
    """An agent that keeps what it gets until `finish`, or settles at once where `at_once`."""

    def __init__(self, *, at_once: bool = False) -> None:
        self.at_once = at_once
        self.got: list[tuple[int, int]] = []
        self.values: list[bytes | None] = []
        self.held: list[tuple[Lane, Record]] = []
        self.lanes: list[Lane] = []
        self.dropped: list[Lane] = []
        self.refused: list[tuple[int, str]] = []

    async def handle(self, batch: Batch) -> None:
        for record in batch.records:
            self.got.append((record.partition, record.offset))
            self.values.append(record.value)
            self.held.append((batch.lane, record))
        if self.at_once:
            self.finish()

    def finish(self, count: int | None = None) -> None:
        done, self.held = self.held[:count], self.held[count or len(self.held) :]
        for lane, record in done:
            lane.settle((record.offset,), [Outgoing("out", record.key, record.value or b"")])

    def refuse(self, record: Record, failure: Failure) -> Sequence[Output]:
        self.refused.append((record.offset, failure.code))
        return (Outgoing("answers", record.key, failure.code.encode()),)

    def assigned(self, lane: Lane) -> None:
        self.lanes.append(lane)

    def revoked(self, lane: Lane) -> None:
        self.dropped.append(lane)


TOPICS = {"out": 1, "answers": 1, "dead-letters": 1}


class Rig:
    """An inlet and an outlet on fakes, its batches run as they come."""

    def __init__(
        self,
        agent,
        group: FakeGroup | None = None,
        sink: FakeSink | None = None,
        isolation: Isolation | None = None,
        group_id: str = "g",
        **settings,
    ) -> None:
        self.group = group or FakeGroup()
        self.agent = agent
        self.source = FakeSource(self.group)
        self.sink = sink or FakeSink(TOPICS)
        clock = BrokerClock()
        self.outlet = Outlet(self.sink, clock, send_timeout_s=1.0)
        quick = {
            "commit_every_s": 0.01,
            "prove_every_s": 0.05,
            "poll_s": 0.005,
            "drain_s": 0.2,
            "wait_s": 0.5,
        }
        self.inlet = Inlet(
            self.source,
            self.outlet,
            agent,
            InletSettings(group_id, **{**quick, **settings}),
            clock,
            isolation,
        )
        self.runner = Runner(agent)

    async def start(self) -> Rig:
        await self.outlet.start()
        await self.inlet.start(self.runner.run)
        await asyncio.wait_for(self.inlet.ready.wait(), 5)
        return self

    async def stop(self, deadline_s: float = 0.3) -> None:
        await self.inlet.stop(deadline_s)
        await self.outlet.stop(deadline_s)

    async def __aenter__(self) -> Rig:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def committed(self, partition: int = 0) -> Committed:
        return self.group.commits.get(Place(self.group.topic, partition), Committed(-1, ""))


async def eventually(holds, within_s: float = 5.0) -> None:
    """Return once `holds()`; TimeoutError where it never does."""
    async with asyncio.timeout(within_s):
        while not holds():
            await asyncio.sleep(0.002)


async def never(holds, for_s: float = 0.1) -> None:
    """Assert that `holds()` does not come true."""
    until = asyncio.get_running_loop().time() + for_s
    while asyncio.get_running_loop().time() < until:
        assert not holds()
        await asyncio.sleep(0.005)
