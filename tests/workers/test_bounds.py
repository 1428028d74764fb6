"""What a worker holds is bounded: decoded inputs, what runs, and answers that Kafka has not taken."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.lanes import FakeClock, FakeLane, record, subtask
from tests.workers.test_worker import Gated, card, handle, numbered, until, working
from workers.backends.function import FunctionBackend
from workers.service import Limits
from workers.sizes import weight
from workers.worker import Worker

KIB = 1024


def rows(sizes: list[int]) -> list[Any]:
    return [record(subtask(n, inputs={"n": n, "values": [0.5] * size}), n) for n, size in enumerate(sizes)]


@settings(max_examples=12, deadline=None)
@given(st.lists(st.integers(0, 3000), min_size=1, max_size=60), st.integers(1, 6))
def test_waiting_and_running_inputs_stay_within_the_bytes_but_for_one_row(
    sizes: list[int], batch: int
) -> None:
    most = 128 * KIB
    largest = max(weight({"n": 0, "values": [0.5] * size}) for size in sizes)
    seen: list[int] = []

    async def run() -> list[int]:
        lane, backend = FakeLane(), Gated(card(max_batch=batch))
        async with working(backend, max_bytes=most) as worker:
            service = worker.service("local", "vision/digits")
            assert service is not None
            handling = asyncio.create_task(handle(worker, lane, rows(sizes)))
            backend.gate.set()
            while len(lane.settled) < len(sizes):
                seen.append(service.held)
                await asyncio.sleep(0)
            await handling
            assert service.held == 0
        return lane.settled

    assert sorted(asyncio.run(run())) == list(range(len(sizes)))
    assert max(seen, default=0) <= most + largest, "one row always fits, however large"


async def test_a_list_counts_with_what_it_takes_in_memory_not_on_the_wire() -> None:
    lane, backend = FakeLane(), Gated(card(max_batch=1))
    async with working(backend, max_bytes=100 * KIB) as worker:
        handling = asyncio.create_task(handle(worker, lane, rows([784] * 12)))
        await until(backend.entered.is_set)
        await asyncio.sleep(0.05)
        assert worker.pending <= 5, "784 numbers take 25 KiB decoded and 7 KiB on the wire"
        backend.gate.set()
        await asyncio.wait_for(handling, 10)
        await until(lambda: len(lane.settled) == 12)


async def test_no_more_is_computed_while_kafka_takes_no_answers() -> None:
    lane = FakeLane()
    ran: list[int] = []

    def answer(inputs: dict[str, Any], params: dict[str, Any]) -> Any:
        ran.append(inputs["n"])
        return "x" * 1000

    limits = Limits(max_unwritten=10_000)
    worker = Worker([FunctionBackend(card(), answer)], name="w", clock=FakeClock(), limits=limits)
    await worker.start()
    worker.assigned(lane)  # type: ignore[arg-type]
    lane.writing_bytes = 10_001
    await handle(worker, lane, numbered(5))
    await asyncio.sleep(0.1)
    assert ran == []
    lane.writing_bytes = 9_999
    await until(lambda: len(lane.settled) == 5)
    lane.writing_bytes = 10_001
    worker.revoked(lane)  # type: ignore[arg-type]
    other = FakeLane(partition=1)
    await handle(worker, other, numbered(2, 10))
    await until(lambda: len(other.settled) == 2)
    await worker.stop(1.0)


async def test_the_rows_of_a_revoked_lane_give_their_room_back() -> None:
    old, new, backend = FakeLane(epoch=1), FakeLane(epoch=2), Gated(card(max_batch=1))
    async with working(backend, max_bytes=60 * KIB) as worker:
        handling = asyncio.create_task(handle(worker, old, rows([784] * 9)))
        await until(backend.entered.is_set)
        old.alive = False
        worker.revoked(old)  # type: ignore[arg-type]
        await asyncio.wait_for(handling, 3)
        await asyncio.wait_for(handle(worker, new, rows([784])), 3)
        backend.gate.set()
        await until(lambda: new.settled == [0])
