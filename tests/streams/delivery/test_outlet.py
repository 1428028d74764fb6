"""The outlet on a sink in memory: the contract that the real one is held to, and what only a fake can do."""

from __future__ import annotations

import asyncio
import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.messages import Verdict
from streams.delivery import (
    BrokerClock,
    Cleared,
    Outgoing,
    Outlet,
    Unavailable,
    Uncleared,
    outlet,
    partitions,
)
from streams.privacy.clearance import Clearance, clear
from tests.helpers.delivery import FakeSink, eventually, never
from tests.helpers.delivery_contracts import Calls, SinkContract


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlet, "LEAST_PAUSE_S", 0.001)
    monkeypatch.setattr(partitions, "RETRY_S", 0.005)
    monkeypatch.setattr(partitions, "AGAIN_S", 0.005)


class FakeRig:
    too_large = b"too large"

    def __init__(self) -> None:
        self.sink = FakeSink(limit=40)
        self.sink.refused.add(self.too_large)
        self._made = 0

    async def topic(self, partitions: int) -> str:
        self._made += 1
        self.sink.topics[f"t{self._made}"] = partitions
        return f"t{self._made}"

    async def delete(self, topic: str) -> None:
        del self.sink.topics[topic]

    async def read(self, topic: str, partition: int) -> list[bytes]:
        return self.sink.values(topic, partition)

    async def break_producer(self) -> None:
        self.sink.started = False


@pytest.fixture
def sink_rig() -> FakeRig:
    return FakeRig()


class TestFakeSink(SinkContract):
    pass


def started(sink: FakeSink, **options) -> Outlet:
    sink.started = True
    return Outlet(sink, BrokerClock(), send_timeout_s=1.0, **options)


async def test_an_unknown_outcome_is_written_again_even_where_it_was_written() -> None:
    sink = FakeSink({"t": 1})
    it, calls = started(sink), Calls()
    sink.silent, sink.takes_silently = 1, True
    it.post([Outgoing("t", b"k", b"x")], calls.back("x"))
    assert await it.flush(5)
    assert sink.values("t") == [b"x", b"x"]
    assert (sink.replaced, calls.done) == (1, {"x": 1})


async def test_many_partitions_that_fall_silent_together_replace_one_producer() -> None:
    sink = FakeSink({"t": 20})
    it = started(sink)
    sink.started = False
    for number in range(20):
        it.post([Outgoing("t", None, b"x", partition=number)], lambda: None)
    assert await it.flush(5)
    assert sink.replaced == 1


async def test_while_kafka_is_away_nothing_is_acknowledged_or_given_up() -> None:
    sink = FakeSink({"t": 1, "u": 1})
    gone: list[Outgoing] = []
    it = started(sink, substitute=lambda record, error: gone.append(record) or ())
    await it.send(Outgoing("t", b"k", b"first"))
    sink.down = True
    calls = Calls()
    it.post([Outgoing("t", b"k", b"x")], calls.back("known"))
    it.post([Outgoing("u", b"k", b"y")], calls.back("unknown"))
    await never(lambda: calls.done)
    assert not await it.flush(0.01)
    sink.down = False
    assert await it.flush(10)
    assert (calls.done, gone) == ({"known": 1, "unknown": 1}, [])


async def test_a_send_that_nobody_acknowledges_says_so_and_goes_on() -> None:
    sink = FakeSink({"t": 1})
    it = started(sink)
    sink.gate.clear()
    with pytest.raises(Unavailable):
        await it.send(Outgoing("t", b"k", b"x"), wait_s=0.05)
    sink.gate.set()
    assert await it.flush(5)
    assert sink.values("t") == [b"x"]


async def test_order_is_kept_over_the_first_look_up_and_over_silences() -> None:
    sink = FakeSink({"t": 2})
    it = started(sink)
    sink.silent = 2
    for number in range(500):
        it.post([Outgoing("t", b"k", b"%d" % number)], lambda: None)
        if number % 7 == 0:
            await asyncio.sleep(0)
    assert await it.flush(5)
    log = sink.values("t", 0) + sink.values("t", 1)
    assert log == [b"%d" % number for number in range(500)]
    assert sink.asked <= 4


@given(bad=st.sets(st.integers(0, 79), max_size=8), limit=st.integers(1, 90), silent=st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_whatever_is_refused_the_others_are_written_in_order(bad: set[int], limit: int, silent: int) -> None:
    async def run() -> None:
        sink = FakeSink({"t": 1, "s": 1}, limit)
        sink.refused = {b"%d" % number for number in bad}
        sink.silent = silent
        it, calls = (
            started(sink, substitute=lambda record, error: (Outgoing("s", None, record.value + b"!"),)),
            Calls(),
        )
        for number in range(80):
            it.post([Outgoing("t", b"k", b"%d" % number)], calls.back(str(number)))
        assert await it.flush(20)
        assert sink.values("t") == [b"%d" % number for number in range(80) if number not in bad]
        assert sorted(sink.values("s")) == sorted(b"%d!" % number for number in bad)
        assert calls.done == {str(number): 1 for number in range(80)}

    asyncio.run(run())


async def test_a_substitute_that_is_refused_too_is_the_end_of_it() -> None:
    sink = FakeSink({"t": 1})
    it, calls = started(sink), Calls()
    sink.refused = {b"x"}
    it._substitute = lambda record, error: (Outgoing("gone", None, b"s"),) if record.topic == "t" else ()
    it.post([Outgoing("t", b"k", b"x")], calls.back("x"))
    assert await it.flush(5)
    assert calls.done == {"x": 1}
    assert it.pending == 0


async def test_an_error_that_nobody_foresaw_ends_the_process() -> None:
    sink = FakeSink({"t": 1})
    it = started(sink)
    sink.broken = TypeError("a header is no bytes")
    it.post([Outgoing("t", b"k", b"x")], lambda: None)
    await eventually(it.failed.done)
    assert isinstance(it.failed.exception(), TypeError)


async def test_a_stop_does_not_wait_for_a_broker_that_is_away() -> None:
    sink = FakeSink({"t": 1})
    it = started(sink)
    sink.down = True
    it.post([Outgoing("t", b"k", b"x"), Outgoing("t", None, b"y", partition=0)], lambda: None)
    await asyncio.wait_for(it.stop(0.1), 3)
    assert not it._tasks


async def test_partitions_that_are_added_are_seen_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = FakeSink({"t": 1})
    it = started(sink)
    await it.send(Outgoing("t", b"k1", b"x"))
    sink.topics["t"] = 8
    monkeypatch.setattr(partitions, "STALE_S", 0.0)
    await it.send(Outgoing("t", b"k1", b"x"))
    await eventually(lambda: it._partitions.known("t") == 8)


NORMAL = Verdict(level="normal")


async def test_a_cloud_topic_takes_cleared_records_only() -> None:
    sink = FakeSink({"cloud.x": 1, "local.x": 1})
    it, calls = started(sink), Calls()
    record = Outgoing("cloud.x", b"k", b"payload")
    refused = [
        record,
        Cleared(clear(NORMAL, b"another payload"), record),
        Cleared(clear(NORMAL, b"payload"), Outgoing("local.x", b"k", b"payload")),
    ]
    for output in refused:
        with pytest.raises(Uncleared):
            it.post([Outgoing("local.x", b"k", b"beside"), output], calls.back("refused"))
    assert it.pending == 0
    it.post([Cleared(clear(NORMAL, b"payload"), record)], calls.back("cleared"))
    assert await it.flush(5)
    assert (sink.values("cloud.x"), sink.values("local.x"), calls.done) == ([b"payload"], [], {"cleared": 1})


def test_a_clearance_cannot_be_made_by_hand() -> None:
    with pytest.raises(TypeError):
        Clearance(hashlib.sha256(b"payload").digest())
