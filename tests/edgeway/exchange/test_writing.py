"""Writing: acknowledged, bounded, and clear about what is not known."""

from __future__ import annotations

import asyncio

import pytest

from edgeway.errors import ExchangeClosed, KafkaUnreachable, SendUnknown, TopicsWrong
from edgeway.exchange.writing import Writer
from schemas.errors import TooLarge
from streams.delivery import BrokerClock
from tests.helpers.delivery import FakeSink, eventually


async def writer(sink: FakeSink, *, most: int = 10, wait_s: float = 5.0) -> Writer:
    made = Writer(sink, BrokerClock(), "kafka:1", most, wait_s)
    await made.start()
    return made


async def test_a_silent_producer_is_replaced_and_nothing_is_lost() -> None:
    sink = FakeSink({"requests": 1})
    sink.silent = 1
    out = await writer(sink)
    await asyncio.gather(*(out.write("requests", b"k", b"v%d" % number, [], "r") for number in range(5)))
    assert sorted(sink.values("requests")) == [b"v%d" % number for number in range(5)]
    assert sink.replaced == 1
    await out.stop()


async def test_without_an_acknowledgement_the_outcome_is_unknown_and_the_record_may_come_later() -> None:
    sink = FakeSink({"requests": 1})
    out = await writer(sink, wait_s=0.05)
    sink.gate.clear()
    with pytest.raises(SendUnknown) as said:
        await out.write("requests", b"k", b"v", [], "r1")
    assert said.value.request_id == "r1"
    sink.gate.set()
    await eventually(lambda: sink.values("requests") == [b"v"])
    await eventually(lambda: out.pending == 0)
    await out.stop()


async def test_no_more_than_so_many_are_in_flight() -> None:
    sink = FakeSink({"requests": 1})
    out = await writer(sink, most=2, wait_s=0.05)
    sink.gate.clear()
    for _ in range(2):
        with pytest.raises(SendUnknown):
            await out.write("requests", b"k", b"v", [], "r")
    # Who gave up still holds a place: the record is still being written.
    with pytest.raises(KafkaUnreachable):
        await out.write("requests", b"k", b"never", [], "r")
    sink.gate.set()
    await eventually(lambda: out.pending == 0)
    await out.write("requests", b"k", b"w", [], "r")
    assert sink.values("requests") == [b"v", b"v", b"w"]
    await out.stop()


async def test_what_the_broker_refuses_is_told() -> None:
    sink = FakeSink({"requests": 1})
    sink.refused = {b"big"}
    out = await writer(sink)
    with pytest.raises(TooLarge):
        await out.write("requests", b"k", b"big", [], "r")
    with pytest.raises(TopicsWrong):
        await out.write("cancellations", b"k", b"v", [], "r")
    assert out.pending == 0
    await out.stop()


async def test_closing_fails_all_that_wait() -> None:
    sink = FakeSink({"requests": 1})
    out = await writer(sink)
    sink.gate.clear()
    waiting = asyncio.ensure_future(out.write("requests", b"k", b"v", [], "r"))
    await asyncio.sleep(0.01)
    closing = asyncio.ensure_future(out.stop())
    with pytest.raises(ExchangeClosed):
        await waiting
    sink.gate.set()
    await closing
    assert sink.values("requests") == [b"v"]
    with pytest.raises(ExchangeClosed):
        await out.write("requests", b"k", b"v", [], "r")
