"""What every Sink and every Source must do, run on the fakes and on the real drivers alike."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pytest

from schemas.topics import partition_for
from streams.delivery import BrokerClock, Committed, NotOwner, Outgoing, Outlet, Place, Sink, Source


class SinkRig(Protocol):
    """A sink on some broker. `too_large` is a value that the broker refuses."""

    sink: Sink
    too_large: bytes

    async def topic(self, partitions: int) -> str: ...
    async def delete(self, topic: str) -> None: ...
    async def read(self, topic: str, partition: int) -> list[bytes]: ...
    async def break_producer(self) -> None:
        """Bring the producer into a state in which it never writes again."""


class Calls:
    """Counts callbacks by name."""

    def __init__(self) -> None:
        self.done: dict[str, int] = {}

    def back(self, name: str):
        def call() -> None:
            self.done[name] = self.done.get(name, 0) + 1

        return call


class SinkContract:
    """An outlet on the sink of the fixture `sink_rig`."""

    timeout_s = 2.0

    def outlet(self, rig: SinkRig, **options) -> Outlet:
        return Outlet(rig.sink, BrokerClock(), send_timeout_s=self.timeout_s, **options)

    async def test_records_of_a_partition_keep_their_order_and_call_back_once(
        self, sink_rig: SinkRig
    ) -> None:
        topic, other = await sink_rig.topic(3), await sink_rig.topic(2)
        outlet, calls = self.outlet(sink_rig), Calls()
        await outlet.start()
        posted: dict[int, list[bytes]] = {0: [], 1: [], 2: []}
        for number in range(1500):
            key, value = b"k%d" % number, b"v%d" % number
            outlet.post([Outgoing(topic, key, value), Outgoing(other, key, value)], calls.back(f"c{number}"))
            posted[partition_for(key, 3)].append(value)
            if number % 100 == 0:
                await asyncio.sleep(0)
        assert outlet.pending > 0
        assert await outlet.flush(30)
        assert outlet.pending == 0
        assert calls.done == {f"c{number}": 1 for number in range(1500)}
        for partition, values in posted.items():
            assert await sink_rig.read(topic, partition) == values
        assert sum([len(await sink_rig.read(other, partition)) for partition in (0, 1)]) == 1500
        await outlet.stop(5)

    async def test_an_explicit_partition_wins_over_the_key(self, sink_rig: SinkRig) -> None:
        topic = await sink_rig.topic(3)
        outlet = self.outlet(sink_rig)
        await outlet.start()
        key = next(b"%d" % n for n in range(99) if partition_for(b"%d" % n, 3) != 2)
        await outlet.send(Outgoing(topic, key, b"x", [("h", b"1")], partition=2), wait_s=20)
        assert await sink_rig.read(topic, 2) == [b"x"]
        await outlet.stop(5)

    async def test_a_broken_producer_is_replaced_and_everything_is_written(self, sink_rig: SinkRig) -> None:
        topic = await sink_rig.topic(3)
        outlet, calls = self.outlet(sink_rig), Calls()
        await outlet.start()
        await outlet.send(Outgoing(topic, b"k", b"first"), wait_s=20)
        await sink_rig.break_producer()
        for number in range(300):
            outlet.post([Outgoing(topic, b"k%d" % number, b"v%d" % number)], calls.back(str(number)))
            if number % 50 == 0:
                await asyncio.sleep(0.01)  # some come while it is being replaced
        assert await outlet.flush(40)
        found = [value for partition in range(3) for value in await sink_rig.read(topic, partition)]
        assert {b"first", *(b"v%d" % number for number in range(300))} == set(found)
        assert set(calls.done.values()) == {1}
        assert not outlet.failed.done()
        await outlet.stop(5)

    async def test_one_record_that_is_refused_costs_no_other(self, sink_rig: SinkRig) -> None:
        topic, instead = await sink_rig.topic(1), await sink_rig.topic(1)
        refused: list[tuple[bytes, str]] = []

        def substitute(record: Outgoing, error) -> Sequence[Outgoing]:
            refused.append((record.value, error.code))
            return (Outgoing(instead, record.key, b"instead"),)

        outlet, calls = self.outlet(sink_rig, substitute=substitute), Calls()
        await outlet.start()
        await outlet.send(Outgoing(topic, b"k", b"first"), wait_s=20)
        values = [b"v%d" % number for number in range(60)]
        for number, value in enumerate([*values[:23], sink_rig.too_large, *values[23:]]):
            outlet.post([Outgoing(topic, b"k", value)], calls.back(str(number)))
        assert await outlet.flush(30)
        assert await sink_rig.read(topic, 0) == [b"first", *values]
        assert await sink_rig.read(instead, 0) == [b"instead"]
        assert refused == [(sink_rig.too_large, "too_large")]
        assert calls.done == {str(number): 1 for number in range(61)}
        await outlet.stop(5)

    async def test_a_missing_topic_gives_the_record_up(self, sink_rig: SinkRig) -> None:
        there = await sink_rig.topic(1)
        outlet, calls, given_up = self.outlet(sink_rig), Calls(), []
        outlet._substitute = lambda record, error: given_up.append(error.code) or ()
        await outlet.start()
        outlet.post([Outgoing("nowhere", b"k", b"x"), Outgoing(there, b"k", b"y")], calls.back("both"))
        assert await outlet.flush(30)
        assert given_up == ["unknown_capability"]
        assert calls.done == {"both": 1}
        assert await sink_rig.read(there, 0) == [b"y"]
        await outlet.stop(5)

    async def test_a_topic_that_is_deleted_meanwhile_gives_its_records_up(self, sink_rig: SinkRig) -> None:
        topic = await sink_rig.topic(2)
        outlet = self.outlet(sink_rig)
        await outlet.start()
        await outlet.send(Outgoing(topic, b"k", b"x"), wait_s=20)
        await sink_rig.delete(topic)
        calls = Calls()
        outlet.post(
            [Outgoing(topic, b"k", b"x"), Outgoing(topic, None, b"y", partition=1)], calls.back("both")
        )
        assert await outlet.flush(60)
        assert calls.done == {"both": 1}
        await outlet.stop(5)


class SourceRig(Protocol):
    """A topic of three partitions and members of one group that reads it."""

    topic: str

    async def append(self, partition: int, *values: bytes) -> None: ...
    def member(self) -> Source: ...


@dataclass
class Listener:
    """Writes down what it is told."""

    told: list[tuple[str, frozenset[Place]]] = field(default_factory=list)
    owned: frozenset[Place] = frozenset()

    async def revoked(self, places: frozenset[Place]) -> None:
        self.told.append(("revoked", places))
        self.owned = frozenset()

    async def assigned(self, places: frozenset[Place]) -> None:
        self.told.append(("assigned", places))
        self.owned = places


async def read(source: Source, count: int, into: dict[Place, list[bytes]] | None = None) -> dict:
    """The values of the next `count` records, by partition."""
    found: dict[Place, list[bytes]] = {} if into is None else into
    async with asyncio.timeout(20):
        while sum(map(len, found.values())) < count:
            batches: Mapping = await source.poll(0.1, 100)
            for place, records in batches.items():
                found.setdefault(place, []).extend(record.value for record in records)
    return found


class SourceContract:
    """The source of the fixture `source_rig`."""

    async def test_all_partitions_come_and_their_records_in_order(self, source_rig: SourceRig) -> None:
        source, listener = source_rig.member(), Listener()
        places = frozenset(Place(source_rig.topic, number) for number in range(3))
        for number in range(3):
            await source_rig.append(number, *[b"%d-%d" % (number, n) for n in range(50)])
        await source.start(listener)
        assert listener.owned == places
        found = await read(source, 150)
        assert found == {place: [b"%d-%d" % (place.partition, n) for n in range(50)] for place in places}
        assert await source.poll(0.05, 100) == {}
        await source.stop(5)

    async def test_no_more_records_come_than_asked_for(self, source_rig: SourceRig) -> None:
        source = source_rig.member()
        await source_rig.append(0, *[b"%d" % number for number in range(30)])
        await source.start(Listener())
        got: list[bytes] = []
        async with asyncio.timeout(20):
            while len(got) < 30:
                batches = await source.poll(0.2, 7)
                assert sum(map(len, batches.values())) <= 7
                got += [record.value for records in batches.values() for record in records]
        assert got == [b"%d" % number for number in range(30)]
        await source.stop(5)

    async def test_offsets_and_notes_are_kept(self, source_rig: SourceRig) -> None:
        source = source_rig.member()
        first, second = Place(source_rig.topic, 0), Place(source_rig.topic, 1)
        await source_rig.append(0, b"a", b"b", b"c")
        await source.start(Listener())
        assert await source.committed([first, second], 5) == {
            first: Committed(-1, ""),
            second: Committed(-1, ""),
        }
        await source.commit({first: Committed(2, "f2;n1")}, 5)
        assert await source.committed([first, second], 5) == {
            first: Committed(2, "f2;n1"),
            second: Committed(-1, ""),
        }
        assert await source.ends([first, second], 5) == {first: 3, second: 0}
        assert await source.beginnings([first, second], 5) == {first: 0, second: 0}
        await source.stop(5)

    async def test_a_seek_reads_again(self, source_rig: SourceRig) -> None:
        source = source_rig.member()
        place = Place(source_rig.topic, 0)
        await source_rig.append(0, b"a", b"b", b"c")
        await source.start(Listener())
        await read(source, 3)
        source.seek(place, 1)
        assert await read(source, 2) == {place: [b"b", b"c"]}
        await source.stop(5)

    async def test_a_paused_partition_is_silent_and_loses_nothing(self, source_rig: SourceRig) -> None:
        source = source_rig.member()
        place = Place(source_rig.topic, 0)
        await source_rig.append(0, b"a")
        await source_rig.append(1, b"x")
        await source.start(Listener())
        await read(source, 2)
        source.pause([place])
        await source_rig.append(0, b"b", b"c")
        await source_rig.append(1, b"y")
        assert await read(source, 1) == {Place(source_rig.topic, 1): [b"y"]}
        assert await source.poll(0.2, 100) == {}
        source.resume([place])
        assert await read(source, 2) == {place: [b"b", b"c"]}
        await source.stop(5)

    async def test_a_cancelled_poll_loses_nothing(self, source_rig: SourceRig) -> None:
        source, found = source_rig.member(), {}
        await source.start(Listener())
        for number in range(5):
            task = asyncio.create_task(source.poll(5.0, 100))
            await asyncio.sleep(0.05)
            task.cancel()
            for ended in await asyncio.gather(task, return_exceptions=True):
                assert isinstance(ended, asyncio.CancelledError) or ended == {}
            await source_rig.append(0, b"%d" % number)
            await read(source, number + 1, found)
        assert found == {Place(source_rig.topic, 0): [b"%d" % number for number in range(5)]}
        await source.stop(5)

    async def test_a_partition_of_another_cannot_be_committed(self, source_rig: SourceRig) -> None:
        source = source_rig.member()
        await source.start(Listener())
        with pytest.raises(NotOwner):
            await source.commit({Place(source_rig.topic, 7): Committed(1, "")}, 5)
        source.check()
        await source.stop(5)
