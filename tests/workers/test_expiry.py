"""Works that wait expire on time, at little cost."""

from __future__ import annotations

import asyncio
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.lanes import FakeClock, FakeLane, subtask
from workers.batching import Batcher
from workers.expiry import Expiry
from workers.work import Work


def work(number: int, deadline: int) -> Work:
    its = subtask(number, inputs={"n": number}, deadline=deadline)
    return Work(FakeLane(), number, 0, its, b"", None, number % 3, 1, 8, 0.0)  # type: ignore[arg-type]


def batcher() -> Batcher[Work]:
    return Batcher(8, 0.0, 1_000_000, 1_000_000_000)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 60), min_size=1, max_size=20))
def test_each_is_taken_once_and_never_before_its_deadline(after: list[int]) -> None:
    async def run() -> None:
        clock, waiting, woken = FakeClock(), batcher(), asyncio.Event()
        expiry, taken = Expiry(clock, woken.set), []
        began, start = time.monotonic(), clock.ms
        for number, ms in enumerate(after):
            waiting.put(work(number, start + ms))
            expiry.see(start + ms)
        async with asyncio.timeout(5):
            while len(waiting):
                clock.ms = start + int((time.monotonic() - began) * 1000)
                found = expiry.taken(waiting)
                assert all(each.subtask.deadline <= clock.ms for each in found)
                taken += found
                if len(waiting):
                    woken.clear()
                    await woken.wait()
        expiry.stop()
        assert sorted(each.offset for each in taken) == list(range(len(after)))

    asyncio.run(run())


async def test_an_earlier_deadline_is_looked_at_earlier() -> None:
    clock, waiting, woken = FakeClock(), batcher(), asyncio.Event()
    expiry = Expiry(clock, woken.set)
    for number, ms in enumerate((600_000, 100)):
        waiting.put(work(number, clock.ms + ms))
        expiry.see(clock.ms + ms)
        assert expiry.taken(waiting) == []
    clock.ms += 100
    async with asyncio.timeout(0.9):
        await woken.wait()
    assert [each.offset for each in expiry.taken(waiting)] == [1]
    expiry.stop()


async def test_a_clock_that_is_put_forward_is_noticed_within_two_seconds() -> None:
    clock, waiting, woken = FakeClock(), batcher(), asyncio.Event()
    expiry = Expiry(clock, woken.set)
    waiting.put(work(0, clock.ms + 60_000))
    expiry.see(clock.ms + 60_000)
    assert expiry.taken(waiting) == []
    clock.ms += 60_000
    async with asyncio.timeout(2):
        await woken.wait()
    assert len(expiry.taken(waiting)) == 1


async def test_looking_through_thousands_of_rows_takes_a_small_share_of_the_time() -> None:
    clock, waiting = FakeClock(), batcher()
    expiry = Expiry(clock, lambda: None)
    for number in range(4096):
        waiting.put(work(number, clock.ms + number))
        expiry.see(clock.ms + number)
    looks, spent, began = 0, 0.0, time.monotonic()
    while time.monotonic() - began < 0.5:
        clock.ms += 1
        before = time.process_time()
        looks += bool(expiry.taken(waiting))
        spent += time.process_time() - before
        await asyncio.sleep(0.001)
    expiry.stop()
    assert looks >= 1
    assert spent < 0.3 * (time.monotonic() - began)
