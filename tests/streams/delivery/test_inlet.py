"""The inlet on a group in memory: pausing, epochs, commits, hand-overs, killers, stops."""

from __future__ import annotations

import asyncio

import pytest

from streams import metrics
from streams.delivery import (
    Batch,
    Committed,
    DeliveryError,
    Isolation,
    NotOwner,
    Place,
    TwinTookOver,
    Unavailable,
)
from streams.delivery.suspects import parse
from tests.helpers.delivery import FakeGroup, FakeSink, Keeper, Rig, eventually, never

P0, P1 = Place("in", 0), Place("in", 1)


def group(count: int, partitions: int = 1) -> FakeGroup:
    found = FakeGroup(partitions=partitions)
    for partition in range(partitions):
        found.append(*[b"%d" % number for number in range(count)], partition=partition)
    return found


async def test_the_watermark_is_committed_and_no_more() -> None:
    agent = Keeper()
    async with Rig(agent, group(10)) as rig:
        await eventually(lambda: len(agent.held) == 10)
        late = agent.held.pop(3)
        agent.finish()
        await eventually(lambda: rig.committed().offset == 3)
        await never(lambda: rig.committed().offset != 3, 0.05)
        agent.held.append(late)
        agent.finish()
        await eventually(lambda: rig.committed().offset == 10)
        assert rig.sink.values("out")[-1] == b"3"


async def test_nothing_is_committed_before_its_output_is_acknowledged() -> None:
    agent = Keeper(at_once=True)
    sink = FakeSink({"out": 1})
    sink.gate.clear()
    async with Rig(agent, group(3), sink) as rig:
        await eventually(lambda: len(agent.got) == 3)
        await never(lambda: rig.committed().offset > 0)
        sink.gate.set()
        await eventually(lambda: rig.committed().offset == 3)


async def test_the_lease_is_proved_again_and_again_although_nothing_moves() -> None:
    async with Rig(Keeper(), group(0)) as rig:
        await eventually(lambda: len(rig.source.commits) >= 3)
        assert rig.inlet.committer.lease.is_fresh(asyncio.get_running_loop().time())


class TestPausing:
    async def test_by_records_with_hysteresis(self) -> None:
        agent = Keeper()
        async with Rig(agent, group(100), window_records=10, batch_records=5) as rig:
            await eventually(lambda: P0 in rig.source.paused)
            await never(lambda: len(agent.held) > 15)
            held = len(agent.held)
            agent.finish(held - 6)
            await never(lambda: P0 not in rig.source.paused, 0.05)
            agent.finish(1)
            await eventually(lambda: len(agent.held) > 6)
            agent.at_once = True
            agent.finish()
            await eventually(lambda: rig.committed().offset == 100)

    async def test_by_bytes(self) -> None:
        agent = Keeper()
        log = FakeGroup()
        log.append(*[b"x" * 1000 for _ in range(50)])
        async with Rig(agent, log, window_bytes=10_000, batch_records=1) as rig:
            await eventually(lambda: P0 in rig.source.paused)
            assert len(agent.held) == 5  # key and value count
            agent.at_once = True
            agent.finish()
            await eventually(lambda: rig.committed().offset == 50)

    async def test_joins_are_never_paused(self) -> None:
        agent = Keeper()
        async with Rig(agent, group(100), window_records=10, batch_records=5, pausing=False) as rig:
            await eventually(lambda: len(agent.held) == 100)
            assert rig.source.pauses == []

    async def test_one_full_partition_does_not_keep_the_others(self) -> None:
        log = group(50, partitions=2)
        agent = Keeper()
        async with Rig(agent, log, window_records=10, batch_records=5) as rig:
            await eventually(lambda: rig.source.paused == {P0, P1})
            mine = [pair for pair in agent.held if pair[0].partition == 1]
            agent.held = [pair for pair in agent.held if pair[0].partition == 0]
            for lane, record in mine:
                lane.settle((record.offset,))
            await eventually(lambda: sum(partition for partition, _ in agent.got) > len(mine))
            assert P0 in rig.source.paused

    async def test_a_rebalance_loses_pauses_and_the_inlet_pauses_again(self) -> None:
        agent = Keeper()
        async with Rig(agent, group(100), window_records=10, batch_records=5) as rig:
            await eventually(lambda: P0 in rig.source.paused)
            pauses = len(rig.source.pauses)
            await rig.source.rebalance(rig.group.places)
            assert rig.source.paused == set()
            await eventually(lambda: len(rig.source.pauses) > pauses)
            await never(lambda: sum(lane.alive for lane, _ in agent.held) > 15)


class TestRebalance:
    async def test_work_in_flight_is_waited_for_and_not_done_again(self) -> None:
        agent = Keeper()
        async with Rig(agent, group(10), drain_s=2.0) as rig:
            await eventually(lambda: len(agent.held) == 10)
            asyncio.get_running_loop().call_later(0.05, agent.finish)
            await rig.source.rebalance(rig.group.places)
            assert rig.committed() == Committed(10, "clean")
            await eventually(rig.inlet.ready.is_set)
            await never(lambda: len(agent.got) > 10, 0.05)

    async def test_work_of_an_old_epoch_finishes_silently(self) -> None:
        agent = Keeper()
        async with Rig(agent, group(5)) as rig:
            await eventually(lambda: len(agent.held) == 5)
            old = list(agent.held)
            await rig.source.rebalance(rig.group.places)
            await eventually(lambda: len(agent.held) == 10)
            agent.held = agent.held[5:]
            for lane, record in old:
                assert not lane.alive
                lane.settle((record.offset,), [])
                lane.fail(record, None)
            await never(lambda: rig.committed().offset > 0, 0.05)
            agent.finish()
            await eventually(lambda: rig.committed().offset == 5)
            assert rig.sink.values("dead-letters") == []
            epochs = [lane.epoch for lane in agent.lanes]
            assert epochs == sorted(set(epochs))
            assert agent.dropped == agent.lanes[:1]

    async def test_a_handler_in_the_middle_is_left_to_itself(self) -> None:
        entered, leave = asyncio.Event(), asyncio.Event()

        class Slow(Keeper):
            async def handle(self, batch: Batch) -> None:
                if not entered.is_set():
                    entered.set()
                    await leave.wait()
                await super().handle(batch)

        agent = Slow(at_once=True)
        rig = Rig(agent, group(3), drain_s=0.05)
        jobs: list[asyncio.Task] = []

        async def deliver(batch: Batch) -> None:
            jobs.append(asyncio.create_task(rig.runner.run(batch)))

        await rig.outlet.start()
        await rig.inlet.start(deliver)
        await asyncio.wait_for(entered.wait(), 5)
        await asyncio.wait_for(rig.source.rebalance(rig.group.places), 2)
        await eventually(lambda: rig.committed().offset == 3)
        leave.set()
        await asyncio.gather(*jobs)
        await rig.outlet.flush(1)
        assert len(rig.sink.values("out")) == 3
        await rig.stop()

    async def test_records_that_no_agent_took_are_not_waited_for(self) -> None:
        full = asyncio.Event()

        async def deliver(batch: Batch) -> None:
            full.set()
            await asyncio.Event().wait()

        rig = Rig(Keeper(), group(10), drain_s=5.0)
        await rig.outlet.start()
        await rig.inlet.start(deliver)
        await asyncio.wait_for(full.wait(), 5)
        await asyncio.wait_for(rig.source.rebalance(frozenset()), 1)
        assert rig.committed() == Committed(0, "clean")
        await rig.stop()

    async def test_rebalance_upon_rebalance(self) -> None:
        log = group(200, partitions=2)
        agent = Keeper(at_once=True)
        async with Rig(agent, log) as rig:
            for number in range(30):
                await rig.source.rebalance([{P0}, {P0, P1}, frozenset(), {P1}][number % 4])
                await asyncio.sleep(0.001 * (number % 5))
            await rig.source.rebalance(log.places)
            await eventually(lambda: rig.committed(0).offset == rig.committed(1).offset == 200)
            assert sorted(agent.got) == [(partition, offset) for partition in (0, 1) for offset in range(200)]
            assert not rig.inlet.failed.done()

    async def test_a_handed_over_partition_is_clean_for_its_next_owner(self) -> None:
        log = group(5)
        async with Rig(Keeper(at_once=True), log) as first:
            await eventually(lambda: first.committed().offset == 5)
            await first.source.rebalance(frozenset())
            log.append(b"new")
            heir = Keeper(at_once=True)
            async with Rig(heir, log) as second:
                await eventually(lambda: second.committed().offset == 6)
                assert heir.values == [b"new"]
                assert not heir.lanes[0].careful

    async def test_a_note_from_before_a_hand_over_does_not_undo_it(self) -> None:
        agent = Keeper(at_once=True)
        async with Rig(agent, group(5), commit_every_s=0.001) as rig:
            await eventually(lambda: rig.committed().offset == 5)
            for _ in range(20):
                rig.group.append(b"more")
                rig.source.slow_commit_s = 0.004  # the periodic commit waits behind the last one
                await rig.source.rebalance(frozenset())
                assert rig.committed().note == "clean"
                await asyncio.sleep(0.01)
                assert rig.committed().note == "clean"
                rig.source.slow_commit_s = 0.0
                await rig.source.rebalance(rig.group.places)
                await eventually(lambda: rig.committed().offset == len(rig.group.logs[P0]))


class TestCommitFailures:
    @pytest.mark.parametrize("fault", [NotOwner("rebalanced"), Unavailable("no answer")])
    async def test_failures_are_normal(self, fault: Exception) -> None:
        agent = Keeper(at_once=True)
        async with Rig(agent, group(5)) as rig:
            await eventually(lambda: rig.committed().offset == 5)
            rig.source.fault = fault
            rig.group.append(b"x")
            await eventually(lambda: len(agent.got) == 6)
            await asyncio.sleep(0.03)
            await rig.source.rebalance(rig.group.places)
            assert not rig.inlet.failed.done()
            rig.source.fault = None
            await eventually(lambda: rig.committed().offset == 6)

    async def test_a_lease_is_not_proved_by_a_commit_that_failed(self) -> None:
        async with Rig(Keeper(), group(1), session_s=0.1) as rig:
            lease, now = rig.inlet.committer.lease, asyncio.get_running_loop().time
            await eventually(lambda: lease.is_fresh(now()))
            rig.source.fault = NotOwner("rebalanced")
            await eventually(lambda: not lease.is_fresh(now()))
            await never(lambda: lease.is_fresh(now()))

    async def test_a_twin_ends_the_inlet(self) -> None:
        async with Rig(Keeper(at_once=True), group(5)) as rig:
            rig.source.fault = TwinTookOver("slot a")
            await eventually(rig.inlet.failed.done)
            assert isinstance(rig.inlet.failed.exception(), TwinTookOver)

    async def test_a_twin_that_is_found_at_a_rebalance_is_not_joined_against(self) -> None:
        rig = await Rig(Keeper(at_once=True), group(5)).start()
        rig.source.ended = TwinTookOver("slot a")
        rejoining = asyncio.create_task(rig.source.rebalance(rig.group.places))
        await eventually(rig.inlet.failed.done)
        await never(rejoining.done)
        rejoining.cancel()
        await asyncio.gather(rejoining, return_exceptions=True)
        await asyncio.wait_for(rig.stop(), 3)
        assert rig.source.stopped

    async def test_a_consumer_that_ends_between_assignments_is_noticed(self) -> None:
        async with Rig(Keeper(), group(5)) as rig:
            await rig.source._listener.revoked(rig.source.owned)
            rig.source.ended = DeliveryError("not authorized for the group")
            await eventually(rig.inlet.failed.done)

    async def test_an_error_in_a_poll_ends_the_inlet(self) -> None:
        async with Rig(Keeper(), group(5)) as rig:

            async def poll(wait_s: float, most: int):
                raise RuntimeError("the consumer is broken")

            rig.source.poll = poll
            await eventually(rig.inlet.failed.done)

    async def test_offsets_that_cannot_be_read_yet_are_asked_for_again(self) -> None:
        agent = Keeper(at_once=True)
        rig = Rig(agent, group(5))
        rig.source.unavailable = True
        await rig.outlet.start()
        await rig.inlet.start(rig.runner.run)
        await never(lambda: agent.got or rig.inlet.failed.done())
        rig.source.unavailable = False
        await eventually(lambda: rig.committed().offset == 5)
        await rig.stop()


class TestOpenings:
    async def test_records_deleted_before_they_were_done_are_counted(self) -> None:
        log = group(20)
        log.commits[P0], log.first[P0] = Committed(5, "f5"), 12
        before = metrics.LOST_WORK.labels("in")._value.get()
        agent = Keeper(at_once=True)
        async with Rig(agent, log) as rig:
            await eventually(lambda: rig.committed().offset == 20)
            assert agent.got[0] == (0, 12)
            assert rig.inlet.lost == 7
            assert metrics.LOST_WORK.labels("in")._value.get() - before == 7

    async def test_without_a_commit_nothing_is_lost(self) -> None:
        log = group(20)
        log.first[P0] = 12
        async with Rig(Keeper(at_once=True), log) as rig:
            await eventually(lambda: rig.committed().offset == 20)
            assert rig.inlet.lost == 0

    async def test_a_log_that_was_cut_short_is_read_from_its_start(self) -> None:
        log = group(3)
        log.commits[P0] = Committed(50, "f50;n1;a50")
        agent = Keeper(at_once=True)
        async with Rig(agent, log) as rig:
            await eventually(lambda: rig.committed().offset == 3)
            assert agent.got == [(0, 0), (0, 1), (0, 2)]


class Death(Exception):
    pass


async def die(rig: Rig) -> None:
    """End a process without a word: no drain, no last commit."""
    tasks = [task for task in (rig.inlet._poll, rig.inlet._opening, rig.inlet._commits) if task]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await rig.outlet.stop(0)


class Mortal(Keeper):
    """Its process dies of some values."""

    def __init__(self, *killers: bytes) -> None:
        super().__init__(at_once=True)
        self.killers = killers
        self.dead = asyncio.Event()
        self.sizes: list[int] = []

    async def handle(self, batch: Batch) -> None:
        self.sizes.append(len(batch.records))
        for record in batch.records:
            if record.value in self.killers:
                self.values.append(record.value)
                self.dead.set()
                await asyncio.Event().wait()
            await super().handle(Batch(batch.lane, [record]))


class TestKillers:
    async def test_a_killer_is_answered_at_the_third_try_and_the_others_are_done(self) -> None:
        log, sink = group(10), FakeSink({"out": 1, "answers": 1, "dead-letters": 1})
        for life in range(3):
            agent = Mortal(b"4")
            rig = await Rig(agent, log, sink).start()
            await asyncio.wait_for(agent.dead.wait(), 5)
            # What was done before is committed or not, as it comes.
            await die(rig)
            assert agent.values.count(b"4") == 1
            if life == 2:
                assert set(agent.sizes) == {1}
                assert parse(log.commits[P0].note).alone == 4
        agent = Mortal(b"4")
        async with Rig(agent, log, sink) as rig:
            await eventually(lambda: rig.committed().offset == 10)
            assert agent.refused == [(4, "killed_its_process")]
            assert agent.values == [b"5", b"6", b"7", b"8", b"9"]
            log.append(b"a", b"b", b"c")
            await eventually(lambda: rig.committed().offset == 13)
            assert agent.sizes[-1] == 3
        assert [record.value for record in sink.log[Place("dead-letters", 0)]] == [b"4"]
        assert sink.values("answers") == [b"killed_its_process"]
        assert set(sink.values("out")) == {b"%d" % n for n in range(10) if n != 4} | {b"a", b"b", b"c"}

    async def test_alone_means_alone_in_the_process(self) -> None:
        careful = group(3)
        careful.commits[P0] = Committed(0, "f0;n1")
        other = FakeGroup("other")
        isolation = Isolation()
        busy, agent = Keeper(), Keeper(at_once=True)
        sink = FakeSink({"out": 1})
        other.append(b"x")
        async with Rig(busy, other, sink, isolation) as second:
            await eventually(lambda: len(busy.held) == 1)
            async with Rig(agent, careful, sink, isolation) as first:
                await never(lambda: agent.got)
                other.append(b"y", b"z")
                await asyncio.sleep(0.03)
                assert len(busy.held) == 1
                # Between two that are alone the other inlet has its turn.
                busy.at_once = True
                busy.finish()
                await eventually(lambda: first.committed().offset == 3)
                await eventually(lambda: second.committed().offset == 3)

    async def test_after_the_last_one_alone_nobody_is_named_any_more(self) -> None:
        log = group(1)
        log.commits[P0] = Committed(0, "f0;n1")
        agent = Keeper(at_once=True)
        # The periodic commit never comes: what counts is what the hand-out itself wrote.
        rig = await Rig(agent, log, commit_every_s=100.0).start()
        await eventually(lambda: log.commits[P0].offset == 1)
        await die(rig)
        assert parse(log.commits[P0].note).alone == -1

    async def test_a_condemned_record_behind_an_open_join_is_left_alone_for_ever(self) -> None:
        log = group(4)
        log.commits[P0] = Committed(0, "clean;x2")

        class Absorbs(Keeper):
            async def handle(self, batch: Batch) -> None:
                await super().handle(batch)
                for record in batch.records:
                    batch.lane.absorb(record.offset)

        for _ in range(3):
            agent = Absorbs()
            async with Rig(agent, log):
                await eventually(lambda agent=agent: len(agent.got) == 3)
                assert [offset for _, offset in agent.got] == [0, 1, 3]
            assert log.commits[P0] == Committed(0, "clean;x2")


class TestStop:
    async def test_what_is_in_hand_is_waited_for_then_committed_then_left(self) -> None:
        agent = Keeper()
        rig = await Rig(agent, group(5), leave=True).start()
        await eventually(lambda: len(agent.held) == 5)
        asyncio.get_running_loop().call_later(0.05, agent.finish)
        await rig.stop(5)
        assert rig.committed() == Committed(5, "clean")
        assert (rig.source.left, rig.source.stopped) == (True, True)
        assert rig.sink.values("out") == [b"0", b"1", b"2", b"3", b"4"]

    async def test_a_handler_that_hangs_does_not_hold_a_stop_beyond_its_deadline(self) -> None:
        agent = Keeper()
        rig = await Rig(agent, group(5)).start()
        await eventually(lambda: len(agent.held) == 5)
        agent.finish(2)
        await asyncio.wait_for(rig.stop(0.2), 2)
        assert rig.committed() == Committed(2, "clean")
        assert rig.source.stopped
        agent.finish()
        assert not any(lane.alive for lane in agent.lanes)

    async def test_a_broker_that_is_away_does_not_hold_a_stop(self) -> None:
        rig = await Rig(Keeper(), group(5)).start()
        rig.source.slow_commit_s = 100
        began = asyncio.get_running_loop().time()
        await asyncio.wait_for(rig.stop(0.2), 5)
        assert asyncio.get_running_loop().time() - began < 3
        assert rig.source.stopped

    async def test_a_rebalance_during_a_stop_hands_over_what_is_done(self) -> None:
        agent = Keeper()
        rig = await Rig(agent, group(5), drain_s=0.1).start()
        await eventually(lambda: len(agent.held) == 5)
        stopping = asyncio.create_task(rig.stop(5))
        await asyncio.sleep(0.02)
        agent.finish(3)
        await asyncio.wait_for(rig.source.rebalance(frozenset()), 1)
        assert rig.committed() == Committed(3, "clean")
        await asyncio.wait_for(stopping, 1)
        assert len(agent.dropped) == 1

    async def test_a_stop_before_the_start_or_after_a_failed_one(self) -> None:
        rig = Rig(Keeper(), group(5))
        await asyncio.wait_for(rig.inlet.stop(0.1), 2)

    async def test_nothing_is_handed_out_after_a_stop(self) -> None:
        agent = Keeper(at_once=True)
        rig = await Rig(agent, group(0)).start()
        await rig.stop()
        await rig.source.rebalance(rig.group.places)
        rig.group.append(b"late")
        await never(lambda: agent.got)
