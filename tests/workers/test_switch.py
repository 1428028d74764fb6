"""Backends replaced while they work: nothing is lost or answered twice, and each partial says who ran it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Hashable, Sequence
from typing import Any

import pytest

from schemas.cards import Card
from schemas.messages import Failure
from tests.helpers.lanes import FakeClock, FakeLane
from tests.workers.test_worker import Gated, card, handle, numbered, until, working
from workers.backends import Answer, Row
from workers.errors import WorkerError
from workers.service import Limits
from workers.worker import Worker


class Versioned:
    """Answers with its version; notes how often it was closed, and whether anything ran then or later."""

    def __init__(self, version: int, *, one_by_one: bool = False, **fields: Any) -> None:
        self.card = card(version=str(version), **fields)
        self.version = version
        self.one_by_one = one_by_one
        self.closed = 0
        self.misused = 0
        self.largest = 0
        self._running = 0
        self._lock = threading.Lock()

    async def load(self) -> None: ...

    def kin(self, row: Row) -> Hashable:
        return ("of", self.version)

    def infer(self, rows: Sequence[Row]) -> list[Answer]:
        with self._lock:
            self._running += 1
            self.misused += self.closed
            self.largest = max(self.largest, len(rows))
        time.sleep(0.0005)
        with self._lock:
            self._running -= 1
        return [Answer({"n": row.inputs["n"], "version": self.version}) for row in rows]

    def close(self) -> None:
        with self._lock:
            self.closed += 1
            self.misused += self._running


async def test_fifty_switches_under_load_from_two_threads() -> None:
    lane, first = FakeLane(), Versioned(0)
    versions, sent = [first], 0
    async with working(first, threads=2) as worker:
        for number in range(1, 51):
            await handle(worker, lane, numbered(60, sent))
            sent += 60
            await asyncio.sleep(0.002 if number % 2 else 0.0)
            versions.append(Versioned(number, max_batch=number % 16 + 1, one_by_one=number % 5 == 0))
            worker.switch(versions[-1])
        await handle(worker, lane, numbered(60, sent))
        sent += 60
        await until(lambda: len(lane.settled) == sent)
        await until(lambda: all(version.closed for version in versions[:-1]))
        assert versions[-1].closed == 0
    assert sorted(lane.settled) == list(range(sent)), "no row lost, none answered twice"
    for offset, partial in lane.partials().items():
        assert partial.error is None
        assert partial.output["n"] == offset
        assert partial.model is not None
        assert partial.model.version == str(partial.output["version"]), "a partial names who ran it"
    assert {version.closed for version in versions} == {1}
    assert not any(version.misused for version in versions), "closed while it ran, or run when closed"
    assert all(version.largest <= version.card.max_batch for version in versions)
    assert sum(version.largest > 0 for version in versions) > 25, "most of them were at work"


async def test_what_runs_ends_on_the_old_one_which_is_closed_then_and_what_waits_goes_to_the_new_one() -> (
    None
):
    lane, old, new = FakeLane(), Gated(card(version="1")), Versioned(2, max_batch=3)
    async with working(old) as worker:
        await handle(worker, lane, numbered(1))
        await until(old.entered.is_set)
        await handle(worker, lane, numbered(7, 1))
        worker.switch(new)
        assert worker.offers()[0].card.version == "2", "heartbeats tell at once"
        await asyncio.sleep(0.05)
        assert (old.closed, lane.settled) == (False, [])
        old.gate.set()
        await until(lambda: len(lane.settled) == 8 and old.closed)
    found = {offset: partial.model.version for offset, partial in lane.partials().items() if partial.model}
    assert found == {0: "1", **dict.fromkeys(range(1, 8), "2")}
    assert new.largest == 3, "waiting rows obey the new card"


async def test_waiting_rows_are_kin_by_the_new_backend_and_fail_alone_where_it_refuses_them() -> None:
    class Picky(Versioned):
        batches: list[list[int]] = []

        def kin(self, row: Row) -> Hashable:
            if row.inputs["n"] == 3:
                raise ValueError("no threes")
            return row.inputs["n"] % 2

        def infer(self, rows: Sequence[Row]) -> list[Answer]:
            self.batches.append([row.inputs["n"] for row in rows])
            return super().infer(rows)

    lane, old, new = FakeLane(), Gated(), Picky(2)
    async with working(old) as worker:
        await handle(worker, lane, numbered(1))
        await until(old.entered.is_set)
        await handle(worker, lane, numbered(6, 1))
        worker.switch(new)
        old.gate.set()
        await until(lambda: len(lane.settled) == 7)
    assert sorted(new.batches) == [[1, 5], [2, 4, 6], [3]]


async def test_rows_that_waited_for_a_smaller_batch_may_share_a_larger_one() -> None:
    lane, old, new = FakeLane(), Gated(card(max_batch=1)), Versioned(2, max_batch=8)
    async with working(old) as worker:
        await handle(worker, lane, numbered(1))
        await until(old.entered.is_set)
        await handle(worker, lane, numbered(16, 1))
        worker.switch(new)
        old.gate.set()
        await until(lambda: len(lane.settled) == 17)
    assert new.largest == 8


@pytest.mark.parametrize(
    ("its", "told"),
    [(card(capability="nlp/other"), "not served here"), (card(side="cloud"), "not served here")],
)
async def test_another_capability_cannot_take_the_place(its: Card, told: str) -> None:
    async with working(Gated()) as worker:
        with pytest.raises(WorkerError, match=told):
            worker.switch(Gated(its))
        assert worker.offers()[0].card.capability == "vision/digits"


async def test_before_the_start_and_after_the_stop_nothing_is_switched() -> None:
    old, new = Versioned(1), Versioned(2)
    worker = Worker([old], name="w", clock=FakeClock())
    with pytest.raises(WorkerError, match="between start and stop"):
        worker.switch(new)
    await worker.start()
    await worker.stop(1.0)
    with pytest.raises(WorkerError, match="between start and stop"):
        worker.switch(new)
    assert (old.closed, new.closed) == (1, 0), "what was refused stays the caller's"


async def test_a_switch_during_a_stop_drains_on_the_new_one_and_both_are_closed_once() -> None:
    lane, old, new = FakeLane(), Gated(card(max_batch=2)), Versioned(2)
    worker = Worker([old], name="w", clock=FakeClock())
    await worker.start()
    await handle(worker, lane, numbered(9))
    await until(old.entered.is_set)
    stopping = asyncio.create_task(worker.stop(5.0))
    await asyncio.sleep(0.02)
    worker.switch(new)
    old.gate.set()
    await asyncio.wait_for(stopping, 10)
    assert sorted(lane.settled) == list(range(9))
    await until(lambda: old.closed)
    assert (new.closed, len(old.batches)) == (1, 1)


async def test_a_hung_old_backend_is_closed_when_its_run_ends_though_the_worker_has_stopped() -> None:
    lane, old, new = FakeLane(), Gated(), Versioned(2)
    worker = Worker([old], name="w", clock=FakeClock(), limits=Limits(threads=2))
    await worker.start()
    await handle(worker, lane, numbered(1))
    await until(old.entered.is_set)
    worker.switch(new)
    await worker.stop(0.05)
    assert (old.closed, new.closed) == (False, 1)
    old.gate.set()
    await until(lambda: old.closed)
    assert lane.settled == [], "it comes again elsewhere"


async def test_the_same_backend_again_changes_nothing() -> None:
    lane, only = FakeLane(), Versioned(1)
    async with working(only) as worker:
        worker.switch(only)
        await handle(worker, lane, numbered(3))
        await until(lambda: len(lane.settled) == 3)
        assert only.closed == 0
    assert only.closed == 1


async def test_there_and_back_while_a_run_lasts_closes_only_the_one_between() -> None:
    lane, first, between = FakeLane(), Gated(), Versioned(2)
    async with working(first) as worker:
        await handle(worker, lane, numbered(1))
        await until(first.entered.is_set)
        worker.switch(between)
        worker.switch(first)
        first.gate.set()
        await handle(worker, lane, numbered(3, 1))
        await until(lambda: len(lane.settled) == 4)
        await until(lambda: between.closed == 1)
        assert not first.closed
    assert first.closed


async def test_a_close_that_raises_is_logged_and_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    class Sticky(Versioned):
        def close(self) -> None:
            super().close()
            raise OSError("in use")

    lane, old = FakeLane(), Sticky(1)
    async with working(old) as worker:
        worker.switch(Versioned(2))
        await until(lambda: "did not close" in caplog.text)
        await handle(worker, lane, numbered(2))
        await until(lambda: len(lane.settled) == 2)
        worker.switch(Sticky(3))
    assert caplog.text.count("did not close") == 2, "neither does a stop fail by it"


class SlowPayer:
    """Pays once `gate` is open, or refuses."""

    def __init__(self, refuse: bool = False) -> None:
        self.gate, self.refuse = asyncio.Event(), refuse
        self.began = asyncio.Event()
        self.settled: list[float] = []

    async def begin(self, works: Sequence[Any]) -> list[Failure | None]:
        self.began.set()
        await self.gate.wait()
        if self.refuse:
            return [Failure(code="over_budget", message="no")] * len(works)
        for work in works:
            work.nonce = "n"
        return [None] * len(works)

    async def settle(self, works: Sequence[Any], costs: Sequence[float]) -> None:
        self.settled += costs

    async def stop(self) -> None: ...


@pytest.mark.parametrize("refuse", [False, True])
async def test_a_switch_while_a_payment_begins(refuse: bool) -> None:
    lane, payer = FakeLane(), SlowPayer(refuse)
    old, new = Versioned(1, cost_per_call=0.5, max_cost=0.5), Versioned(2, cost_per_call=0.5, max_cost=0.5)
    worker = Worker([old], name="w", clock=FakeClock(), payer=payer)
    await worker.start()
    await handle(worker, lane, numbered(2, max_cost=0.5))
    await asyncio.wait_for(payer.began.wait(), 5)
    worker.switch(new)
    assert old.closed == 0, "a batch that is being paid for is claimed for the old one"
    payer.gate.set()
    await until(lambda: len(lane.settled) == 2)
    await until(lambda: old.closed == 1)
    versions = {partial.model.version for partial in lane.partials().values() if partial.model and not refuse}
    assert versions == (set() if refuse else {"1"})
    assert payer.settled == ([] if refuse else [0.5, 0.5])
    await worker.stop(1.0)
    assert new.closed == 1


async def test_a_stop_in_the_midst_of_a_payment_closes_the_backend_all_the_same() -> None:
    lane, payer, only = FakeLane(), SlowPayer(), Versioned(1, max_cost=0.5)
    worker = Worker([only], name="w", clock=FakeClock(), payer=payer)
    await worker.start()
    await handle(worker, lane, numbered(1, max_cost=0.5))
    await asyncio.wait_for(payer.began.wait(), 5)
    await worker.stop(0.05)
    assert (only.closed, lane.settled, worker.pending) == (1, [], 0)
