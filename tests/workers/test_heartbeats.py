"""Heartbeats go on whatever the model and the broker do."""

from __future__ import annotations

import asyncio
import threading

from schemas import codec
from schemas.cards import Card, Heartbeat, Live, Offer
from streams.delivery import Batch, Outgoing
from tests.helpers.lanes import FakeClock, FakeLane, record, subtask
from workers.backends.function import FunctionBackend
from workers.heartbeats import Heartbeats
from workers.worker import Worker

CARD = Card(capability="vision/digits", side="local", version="1", model="m")


def decoded(records: list[Outgoing]) -> list[Heartbeat]:
    return [codec.decode(record.value, Heartbeat) for record in records]


async def test_beats_carry_cards_and_the_last_one_says_goodbye() -> None:
    sent: list[Outgoing] = []
    beats = Heartbeats(
        "w1", lambda: (Offer(card=CARD, live=Live(queue=3)),), sent.append, FakeClock(42), interval_s=0.02
    )
    beats.start()
    async with asyncio.timeout(5):
        while len(sent) < 3:
            await asyncio.sleep(0.005)
    await beats.stop()
    count = len(sent)
    await asyncio.sleep(0.06)
    assert len(sent) == count
    found = decoded(sent)
    assert [beat.leaving for beat in found] == [False] * (count - 1) + [True]
    assert {(record.topic, record.key) for record in sent} == {("capabilities", b"w1")}
    assert found[0].offers[0].card == CARD
    assert (found[0].offers[0].live.queue, found[0].started, found[0].worker) == (3, 42, "w1")


async def test_a_model_that_hangs_does_not_stop_them() -> None:
    gate, sent = threading.Event(), list[Outgoing]()
    worker = Worker(
        [FunctionBackend(CARD, lambda inputs, params: gate.wait(20))], name="w1", clock=FakeClock()
    )
    await worker.start()
    beats = Heartbeats("w1", worker.offers, sent.append, FakeClock(), interval_s=0.02)
    beats.start()
    try:
        await worker.handle(Batch(FakeLane(), [record(subtask())]))  # type: ignore[arg-type]
        async with asyncio.timeout(5):
            while len(sent) < 5:
                await asyncio.sleep(0.005)
        assert decoded(sent)[-1].offers[0].live.in_flight == 1
    finally:
        gate.set()
        await beats.stop()
        await worker.stop(5)


async def test_a_broker_that_fails_or_hangs_does_not_stop_them() -> None:
    tried: list[Outgoing] = []

    async def send(outgoing: Outgoing) -> None:
        tried.append(outgoing)
        if len(tried) % 2:
            raise ConnectionError("away")
        await asyncio.sleep(60)

    beats = Heartbeats("w1", lambda: (), send, FakeClock(), interval_s=0.02)
    beats.start()
    async with asyncio.timeout(5):
        while len(tried) < 4:
            await asyncio.sleep(0.005)
    await asyncio.wait_for(beats.stop(), 2)
    assert beats.failed >= 3
    assert decoded(tried)[-1].leaving
