"""The runner: one record's failure touches no other."""

from __future__ import annotations

import asyncio

import pytest

from streams.delivery import Batch, Place, Runner, agent
from streams.delivery.lane import Lane
from tests.helpers.delivery import LogRecord


class Outlet:
    def __init__(self) -> None:
        self.topics: list[str] = []

    def post(self, outputs, done) -> None:
        self.topics += [record.topic for record in outputs]
        done()


class Agent:
    """Fails on `bad` values, `times` times each."""

    def __init__(self, times: int = 100, keeps: bool = False) -> None:
        self.times, self.keeps = times, keeps
        self.tries: dict[int, int] = {}
        self.lane: Lane | None = None
        self.ends_lane_at: int | None = None

    async def handle(self, batch: Batch) -> None:
        for record in batch.records:
            self.tries[record.offset] = self.tries.get(record.offset, 0) + 1
            if record.offset == self.ends_lane_at:
                batch.lane.alive = False
                raise RuntimeError("the lane ended")
            if record.value == b"bad" and self.tries[record.offset] <= self.times:
                raise RuntimeError("cannot")
            if not self.keeps:
                batch.lane.settle([record.offset])

    def refuse(self, record, failure):
        return ()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "RETRY_AFTER_S", (0.001, 0.002))


def batch(*values: bytes) -> tuple[Batch, Outlet]:
    outlet = Outlet()
    lane = Lane(Place("in", 0), 1, 0, len(values), outlet, group="g", refuse=lambda *_: ())
    records = [LogRecord("in", 0, offset, value=value) for offset, value in enumerate(values)]
    lane.take(records)
    return Batch(lane, records), outlet


async def test_a_record_that_fails_alone_is_dead_lettered_after_three_tries_alone() -> None:
    work, outlet = batch(b"a", b"bad", b"b", b"bad", b"c")
    it = Agent()
    await Runner(it).run(work)
    assert outlet.topics == ["dead-letters"] * 2
    assert work.lane.window.watermark == 5
    assert it.tries[1] == 1 + 3
    assert it.tries[3] == 3
    assert it.tries[0] == it.tries[2] == it.tries[4] == 1


async def test_a_record_that_fails_for_a_while_is_not_dead_lettered() -> None:
    work, outlet = batch(b"a", b"bad")
    await Runner(Agent(times=3)).run(work)
    assert outlet.topics == []
    assert work.lane.window.watermark == 2


async def test_a_dead_lane_is_not_run() -> None:
    work, _ = batch(b"a")
    work.lane.alive = False
    it = Agent()
    await Runner(it).run(work)
    assert it.tries == {}


async def test_a_lane_that_ends_meanwhile_is_left_alone() -> None:
    work, outlet = batch(b"a", b"b", b"c")
    it = Agent()
    it.ends_lane_at = 1
    await Runner(it).run(work)
    assert it.tries == {0: 1, 1: 1}
    assert outlet.topics == []


async def test_absorbed_records_are_not_handled_again_when_another_fails() -> None:
    work, _ = batch(b"a", b"bad")
    work.lane.absorb(0)
    it = Agent(keeps=True)
    await Runner(it).run(work)
    assert it.tries[0] == 1


async def test_a_handler_that_awaits_something_cancelled_has_failed_as_any_other() -> None:
    class Awaits(Agent):
        async def handle(self, batch: Batch) -> None:
            if batch.records[0].value == b"bad":
                future = asyncio.get_running_loop().create_future()
                future.cancel()
                await future
            await super().handle(batch)

    work, outlet = batch(b"bad", b"a")
    await Runner(Awaits()).run(work)
    assert outlet.topics == ["dead-letters"]
    assert work.lane.window.watermark == 2


async def test_a_runner_that_is_cancelled_ends() -> None:
    class Hangs(Agent):
        async def handle(self, batch: Batch) -> None:
            await asyncio.Event().wait()

    work, outlet = batch(b"a")
    task = asyncio.create_task(Runner(Hangs()).run(work))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert outlet.topics == []
