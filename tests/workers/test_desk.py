"""Others than Kafka ask the same queues."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from tests.helpers.lanes import FakeClock, FakeLane
from tests.workers.test_worker import Gated, card, echo, handle, numbered, until, working
from workers.backends import Row
from workers.backends.function import FunctionBackend
from workers.desk import Closed, Desk, Full
from workers.errors import UnknownCapability
from workers.worker import Worker


def asked(desk: Desk, n: int, deadline_ms: int = 20_000, **more: Any) -> Any:
    row = Row({"n": n}, {})
    return desk.ask("local", "vision/digits", row, subtask=f"h{n}", size=10, deadline_ms=deadline_ms, **more)


async def test_askers_share_batches_with_lanes_and_each_gets_its_own_answer() -> None:
    lane, backend = FakeLane(), Gated()
    async with working(backend) as worker:
        desk = Desk([worker], FakeClock())
        await handle(worker, lane, numbered(1))
        await until(backend.entered.is_set)
        waiting = [asyncio.create_task(asked(desk, n)) for n in range(100, 105)]
        await asyncio.sleep(0.01)
        await handle(worker, lane, numbered(2, 1))
        backend.gate.set()
        answers = await asyncio.gather(*waiting)
        await until(lambda: len(lane.settled) == 3)
    assert [answer.output for answer in answers] == list(range(100, 105))
    assert {answer.model.version for answer in answers} == {"7"}
    shared = [{row.inputs["n"] for row in batch} for batch in backend.batches]
    assert any(min(batch) < 100 <= max(batch) for batch in shared)


async def test_errors_are_answers_too() -> None:
    async with working(FunctionBackend(card(), echo)) as worker:
        desk = Desk([worker], FakeClock())
        row = Row({"bad": 1}, {})
        bad = await desk.ask("local", "vision/digits", row, subtask="a", size=1, deadline_ms=5000)
        assert bad.error is not None
        assert bad.error.code == "bad_input"
        with pytest.raises(UnknownCapability, match="vision/digits"):
            await desk.ask("cloud", "vision/digits", row, subtask="a", size=1, deadline_ms=5000)


async def test_an_answer_of_more_values_than_are_read_costs_its_row_alone() -> None:
    def many(inputs: dict[str, Any], _params: dict[str, Any]) -> Any:
        return [{"a": n, "b": 1.0, "c": "d"} for n in range(inputs["n"])]

    async with working(FunctionBackend(card(), many)) as worker:
        desk = Desk([worker], FakeClock())
        large = await asked(desk, 30_000)
        assert large.error is not None
        assert large.error.code == "too_large", "it speaks against no backend, as bad_output would"
        assert (await asked(desk, 3)).output == many({"n": 3}, {}), "the worker lives"


async def test_a_full_queue_says_so_at_once() -> None:
    backend = Gated(card(max_batch=1))
    async with working(backend, max_rows=2) as worker:
        desk = Desk([worker], FakeClock())
        waiting = [asyncio.create_task(asked(desk, 0))]
        await until(backend.entered.is_set)
        waiting += [asyncio.create_task(asked(desk, n)) for n in (1, 2)]
        await asyncio.sleep(0.01)
        with pytest.raises(Full) as full:
            await asked(desk, 9)
        assert full.value.retry_after_s > 0
        backend.gate.set()
        await asyncio.gather(*waiting)


async def test_the_deadline_ends_the_wait_and_drops_the_row() -> None:
    backend = Gated(card(max_batch=1))
    async with working(backend) as worker:
        desk = Desk([worker], FakeClock())
        first = asyncio.create_task(asked(desk, 0))
        await until(backend.entered.is_set)
        late = await asked(desk, 1, deadline_ms=30)
        assert late.error is not None
        assert late.error.code == "deadline_exceeded"
        assert worker.pending == 1
        backend.gate.set()
        assert (await first).output == 0
    assert len(backend.batches) == 1


async def test_a_caller_that_goes_leaves_no_row() -> None:
    backend = Gated(card(max_batch=1))
    async with working(backend) as worker:
        desk = Desk([worker], FakeClock())
        first = asyncio.create_task(asked(desk, 0))
        await until(backend.entered.is_set)
        gone = asyncio.create_task(asked(desk, 1))
        await asyncio.sleep(0.01)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        assert worker.pending == 1
        backend.gate.set()
        await first


async def test_a_stop_tells_who_waits_at_once() -> None:
    backend = Gated(card(max_batch=1))
    worker = Worker([backend], name="w", clock=FakeClock())
    desk = Desk([worker], FakeClock())
    with pytest.raises(Closed):
        await asked(desk, 0)
    await worker.start()
    waiting = [asyncio.create_task(asked(desk, n)) for n in range(2)]
    await until(backend.entered.is_set)
    await worker.stop(0.05)
    with pytest.raises(Closed):
        await asyncio.wait_for(waiting[1], 1.0)
    with pytest.raises(Closed):
        await asked(desk, 7)
    backend.gate.set()
    waiting[0].cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_what_hangs_is_named_and_a_call_elsewhere_may_last_until_its_deadline() -> None:
    class Elsewhere(Gated):
        def infer_calls(self, rows: Any, calls: Any) -> Any:
            return self.infer(rows)

    clock = FakeClock()
    here, there = Gated(card(capability="a/b")), Elsewhere(card(capability="c/d"))
    async with working(here, clock=clock) as near, working(there, clock=clock) as far:
        desk = Desk([near, far], clock)
        calls = [
            asyncio.create_task(
                desk.ask("local", name, Row({}, {}), subtask=name, size=1, deadline_ms=20_000)
            )
            for name in ("a/b", "c/d")
        ]
        await until(lambda: here.entered.is_set() and there.entered.is_set())
        now = time.monotonic()
        assert desk.hanging(now + 1.0, 2.0) == ()
        assert desk.hanging(now + 10.0, 2.0) == ("local.a.b",)
        assert desk.hanging(now + 23.0, 2.0) == ("local.a.b", "local.c.d")
        here.gate.set()
        there.gate.set()
        await asyncio.gather(*calls)
        assert desk.hanging(time.monotonic() + 100.0, 2.0) == ()
