"""Listeners: their queues, and the reader that runs for them alone."""

from __future__ import annotations

import asyncio

import pytest

from edgeway.errors import ExchangeClosed, ExchangeFull
from edgeway.exchange import listening
from edgeway.exchange.listening import Listener, Listeners
from edgeway.exchange.ports import Event
from schemas import codec
from schemas.topics import partition_for
from tests.helpers.aggregation import T0, FakeClock, partial, plan
from tests.helpers.delivery import eventually
from tests.helpers.followed import Log, Memory


def drained(listener: Listener) -> list[Event]:
    found = []
    while (event := listener.pop()) is not None:
        found.append(event)
    return found


def kinds(listener: Listener) -> list[str]:
    return [event.kind for event in drained(listener)]


def test_a_slow_reader_loses_old_partials_alone() -> None:
    listener = Listener("r", 0, most=4)
    for number in range(20):
        listener.add([Event("partial", number, {}), *([Event("planned", 0, {})] if not number else [])])
    listener.add([Event("escalated", 21, {}), Event("result", 22, {})])
    assert [(event.kind, event.at) for event in drained(listener)] == [
        ("planned", 0),
        ("partial", 19),
        ("escalated", 21),
        ("result", 22),
    ]


async def test_the_topic_is_read_while_somebody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "LINGER_S", 0.02)
    log, clock = Log(), FakeClock()
    listeners = Listeners(log.make, clock, 5)
    assert not listeners.is_reading
    # Before the listener comes: a plan that it still wants, another's, and an older one.
    log.append("old", codec.encode(plan("old")), T0 - 500)
    log.append("r", codec.encode(plan("r")), T0)
    log.append("q", codec.encode(plan("q")), T0)
    first, second = Listener("r", T0 - 10), Listener("old", T0 - 10)
    listeners.add(first)
    listeners.add(second)
    await eventually(lambda: first.shadow.is_planned)
    log.append("r", codec.encode(partial("r", confidence=0.1)), T0)
    third = Listener("r", T0 - 10)
    listeners.add(third)
    await eventually(lambda: third.shadow.is_planned and len(third._events) == 3)
    # The reader went back for the third, which the first does not notice.
    assert kinds(first) == kinds(third) == ["planned", "partial", "escalated"]
    assert kinds(second) == []
    for listener in (first, second, third):
        listeners.remove(listener)
    await eventually(lambda: not listeners.is_reading)
    assert [follower.closed for follower in log.followers] == [True]
    again = Listener("r", T0 - 10)
    listeners.add(again)
    await eventually(lambda: again.shadow.is_planned)
    listeners.remove(again)
    await listeners.close()


async def test_a_partition_without_listeners_is_not_read() -> None:
    log = Log(8)
    listeners = Listeners(log.make, FakeClock(), 5)
    listener = Listener("r", T0)
    listeners.add(listener)
    await eventually(lambda: bool(log.followers) and len(log.followers[0].active) == 1)
    assert log.followers[0].active == {partition_for(b"r", 8)}
    listeners.remove(listener)
    await listeners.close()


async def test_a_reader_that_fails_has_a_successor_that_misses_nothing() -> None:
    log = Log()
    listeners = Listeners(log.make, FakeClock(), 5)
    listener = Listener("r", T0)
    listeners.add(listener)
    log.append("r", codec.encode(plan("r")), T0)
    await eventually(lambda: listener.shadow.is_planned)
    log.away = True
    await eventually(lambda: log.followers[0].closed)
    log.append("r", codec.encode(partial("r", confidence=0.1)), T0)
    other = Listener("r", T0)
    listeners.add(other)
    log.away = False
    await eventually(lambda: len(listener._events) == len(other._events) == 3)
    await listeners.close()


async def test_listeners_are_bounded_and_closing_wakes_them() -> None:
    listeners = Listeners(Log().make, FakeClock(), 1)
    listener = Listener("r", T0)
    listeners.add(listener)
    with pytest.raises(ExchangeFull):
        listeners.add(Listener("s", T0))
    await listeners.close()
    await asyncio.wait_for(listener.news.wait(), 1.0)
    assert listener.closed
    with pytest.raises(ExchangeClosed):
        listeners.add(Listener("s", T0))


async def test_who_comes_while_the_reader_leaves_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "LINGER_S", 0.0)
    leaving = asyncio.Event()

    class Slow(Memory):
        async def close(self) -> None:
            leaving.set()
            await asyncio.sleep(0.05)

    log = Log(1)
    log.append("r", codec.encode(plan("r")), T0)
    listeners = Listeners(lambda: Slow(log), FakeClock(), 5)
    first, second = Listener("r", T0), Listener("r", T0)
    listeners.add(first)
    await eventually(lambda: first.shadow.is_planned)
    listeners.remove(first)
    await leaving.wait()
    listeners.add(second)
    await eventually(lambda: second.shadow.is_planned)
    await listeners.close()
