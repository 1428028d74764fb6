"""The host: batches through Faust, and that whatever ends inside ends it."""

from __future__ import annotations

import asyncio

import pytest

from streams.app import Host
from streams.delivery import Batch, DeliveryError
from tests.helpers.delivery import FakeGroup, Keeper, Rig, eventually


class Hosted(Rig):
    """A rig whose batches take the way through Faust."""

    def __init__(self, agent, **options) -> None:
        super().__init__(agent, **options)
        self.host = Host("test")
        self.host.attach(self.inlet, self.runner)

    async def start(self) -> Hosted:
        await self.outlet.start()
        self.host.guard(self.outlet.failed)
        await self.host.start()
        return self

    async def stop(self, deadline_s: float = 0.3) -> None:
        await self.host.stop(deadline_s)
        await self.outlet.stop(deadline_s)

    async def ends_with(self, kind: type[BaseException]) -> None:
        with pytest.raises(kind):
            await asyncio.wait_for(self.host.wait(asyncio.Event()), 5)


def log(count: int = 20) -> FakeGroup:
    found = FakeGroup(partitions=3)
    for partition in range(3):
        found.append(*[b"%d" % number for number in range(count)], partition=partition)
    return found


async def test_batches_take_the_way_through_faust_in_order() -> None:
    agent = Keeper(at_once=True)
    async with Hosted(agent, group=log()) as rig:
        await eventually(lambda: all(rig.committed(partition).offset == 20 for partition in range(3)))
        for partition in range(3):
            assert [offset for number, offset in agent.got if number == partition] == list(range(20))


async def test_it_waits_until_it_is_told_to_stop() -> None:
    async with Hosted(Keeper(at_once=True), group=log()) as rig:
        stop = asyncio.Event()
        waiting = asyncio.create_task(rig.host.wait(stop))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        stop.set()
        await asyncio.wait_for(waiting, 2)


async def test_nothing_is_handled_after_a_stop() -> None:
    agent = Keeper()
    rig = await Hosted(agent, group=log()).start()
    await eventually(lambda: len(agent.got) == 60)
    await asyncio.wait_for(rig.stop(), 5)
    agent.finish()
    assert rig.sink.values("out") == []
    assert all(not lane.alive for lane in agent.lanes)


@pytest.mark.parametrize("error", [RuntimeError("a runner's bug"), KeyboardInterrupt(), DeliveryError("x")])
async def test_an_error_that_leaves_the_runner_ends_it(error: BaseException) -> None:
    rig = Hosted(Keeper(at_once=True), group=log())

    class Bug(BaseException):
        pass

    async def run(batch: Batch) -> None:
        raise Bug if isinstance(error, KeyboardInterrupt) else error

    rig.runner.run = run
    await rig.start()
    await rig.ends_with(Bug if isinstance(error, KeyboardInterrupt) else type(error))
    await asyncio.wait_for(rig.stop(), 8)


async def test_a_task_that_raises_or_returns_ends_it() -> None:
    for raises in (True, False):
        rig = Hosted(Keeper(at_once=True), group=log())

        async def work(raises: bool = raises) -> None:
            await asyncio.sleep(0.01)
            if raises:
                raise RuntimeError("a task's bug")

        rig.host.add_task("work", work)
        await rig.start()
        await rig.ends_with(RuntimeError if raises else DeliveryError)
        await asyncio.wait_for(rig.stop(), 8)


async def test_a_timer_that_raises_ends_it() -> None:
    rig = Hosted(Keeper(at_once=True), group=log())
    ticks = []

    async def tick() -> None:
        ticks.append(1)
        if len(ticks) == 3:
            raise RuntimeError("a timer's bug")

    rig.host.every(0.01, "tick", tick)
    await rig.start()
    await rig.ends_with(RuntimeError)
    assert len(ticks) == 3
    await asyncio.wait_for(rig.stop(), 8)


async def test_an_inlet_or_an_outlet_that_fails_ends_it() -> None:
    rig = await Hosted(Keeper(at_once=True), group=log()).start()
    rig.source.ended = DeliveryError("the consumer ended")
    await rig.ends_with(DeliveryError)
    await rig.stop()
    rig = await Hosted(Keeper(at_once=True), group=log()).start()
    rig.sink.broken = TypeError("a header is no bytes")
    rig.group.append(b"more")
    await rig.ends_with(TypeError)
    await rig.stop()


async def test_faust_itself_crashing_ends_it() -> None:
    rig = await Hosted(Keeper(at_once=True), group=log()).start()
    await rig.host._app.crash(RuntimeError("a service's bug"))
    await rig.ends_with(DeliveryError)
    await asyncio.wait_for(rig.stop(), 8)


async def test_a_start_that_fails_half_way_can_be_stopped() -> None:
    rig = Hosted(Keeper(at_once=True), group=log())

    async def start(listener) -> None:
        raise DeliveryError("no broker")

    rig.source.start = start
    with pytest.raises(DeliveryError):
        await rig.start()
    await asyncio.wait_for(rig.stop(), 8)
    assert rig.source.stopped


async def test_an_inlet_that_cannot_stop_does_not_keep_the_others() -> None:
    first, second = Hosted(Keeper(), group=log()), Rig(Keeper(), log(), group_id="other")
    first.host.attach(second.inlet, second.runner)
    await first.start()

    async def stop(deadline_s: float) -> None:
        raise RuntimeError("an inlet's bug")

    first.inlet.stop = stop
    await asyncio.wait_for(first.host.stop(0.1), 8)
    assert second.source.stopped
    assert first.host._app.should_stop


async def test_an_agent_that_swallows_its_cancellation_does_not_hold_a_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("streams.app.FAUST_STOP_S", 0.3)
    release = asyncio.Event()

    class Deaf(Keeper):
        async def handle(self, batch: Batch) -> None:
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue

    rig = await Hosted(Deaf(), group=log()).start()
    await asyncio.sleep(0.1)
    await asyncio.wait_for(rig.stop(0.1), 5)
    release.set()
