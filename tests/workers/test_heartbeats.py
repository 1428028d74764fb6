"""Heartbeats go on whatever the model and the broker do."""

from __future__ import annotations

import asyncio
import ctypes
import itertools
import threading
import time
from typing import Any

import pytest

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


@pytest.mark.parametrize("library", [ctypes.CDLL(None), ctypes.PyDLL(None)], ids=["free", "holding the GIL"])
async def test_they_are_on_time_while_a_model_sleeps_in_c(library: ctypes.CDLL) -> None:
    """A call that holds the interpreter's lock delays what comes during it, and no more than that. `PyDLL`
    calls without letting the lock go."""
    interval_s, call_s = 0.2, 0.15
    times: list[float] = []

    def burst(inputs: Any, params: Any) -> int:
        return int(library.usleep(int(call_s * 1e6)))

    lane = FakeLane()
    worker = Worker([FunctionBackend(CARD, burst)], name="w1", clock=FakeClock())
    await worker.start()
    beats = Heartbeats(
        "w1", worker.offers, lambda _: times.append(time.monotonic()), FakeClock(), interval_s=interval_s
    )
    beats.start()
    work = [record(subtask(number), number) for number in range(12)]
    await worker.handle(Batch(lane, work))  # type: ignore[arg-type]
    async with asyncio.timeout(20):
        while len(lane.settled) < 12:
            await asyncio.sleep(0.01)
    await beats.stop()
    await worker.stop(5)
    gaps = [later - sooner for sooner, later in itertools.pairwise(times[:-1])]
    assert len(gaps) >= 7
    assert max(gaps) < interval_s + call_s + 0.25
    assert sum(gaps) / len(gaps) < interval_s + 0.06, "late beats do not add up"


async def test_the_first_one_comes_after_the_load_and_shows_it() -> None:
    sent: list[Outgoing] = []

    class Slow(FunctionBackend):
        async def load(self) -> None:
            await asyncio.sleep(0.1)

    worker = Worker([Slow(CARD, lambda inputs, params: 1)], name="w1", clock=FakeClock())
    await worker.start()
    beats = Heartbeats("w1", worker.offers, sent.append, FakeClock(), interval_s=0.05)
    beats.start()
    await asyncio.sleep(0.12)
    await beats.stop()
    await worker.stop(1)
    assert min(beat.offers[0].live.load_ms for beat in decoded(sent)) >= 90.0


async def test_news_are_told_at_once_and_beats_stay_on_their_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.heartbeats.LOOK_S", 0.02)
    times: list[float] = []
    news: list[bool | None] = [None]
    beats = Heartbeats(
        "w1",
        lambda: (Offer(card=CARD, live=Live(reachable=news[0])),),
        lambda record: times.append(time.monotonic()) or sent.append(record),
        FakeClock(),
        interval_s=0.5,
        news=lambda: news[0],
    )
    sent: list[Outgoing] = []
    beats.start()
    await asyncio.sleep(0.2)
    assert len(sent) == 1, "without news it waits"
    for known in (False, True):
        news[0] = known
        await asyncio.sleep(0.1)
    assert [beat.offers[0].live.reachable for beat in decoded(sent)] == [None, False, True]
    async with asyncio.timeout(5):
        while len(sent) < 5:
            await asyncio.sleep(0.01)
    await beats.stop()
    for number, at in ((3, 0.5), (4, 1.0)):
        assert times[number] - times[0] == pytest.approx(at, abs=0.15)
