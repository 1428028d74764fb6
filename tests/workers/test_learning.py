"""Batches follow what runs cost; the clock of a run is the test's, whatever else the machine does."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import pytest

from tests.helpers.lanes import FakeLane, record, subtask
from tests.workers.test_worker import Gated, card, handle, numbered, until, working
from workers.backends import Answer, Row


class Costly(Gated):
    """A batch takes `cost(rows)` ms of a clock that nothing else moves; it refuses numbers below zero."""

    def __init__(self, cost: Callable[[int], float]) -> None:
        super().__init__(card(max_batch=32))
        self.cost = cost
        self.now_s = 0.0
        self.sizes: list[int] = []

    def infer(self, rows: Sequence[Row]) -> list[Answer]:
        if any(row.inputs["n"] < 0 for row in rows):
            raise ValueError("below zero")
        self.sizes.append(len(rows))
        self.now_s += self.cost(len(rows)) / 1000.0
        return [Answer(row.inputs["n"]) for row in rows]


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Costly:
    made = Costly(request.param)
    clock = SimpleNamespace(monotonic=time.monotonic, perf_counter=lambda: made.now_s)
    monkeypatch.setattr("workers.engine.time", clock)
    return made


async def sizes_of(model: Costly, *, bad: bool) -> list[int]:
    """The sizes of the runs of four bursts, with bursts of refused rows between them."""
    lane = FakeLane()
    async with working(model) as worker:
        for burst in range(1, 5):
            refused = [record(subtask(n, inputs={"n": -1}), n) for n in range(64)] if bad else numbered(64)
            await handle(worker, lane, refused)
            await handle(worker, lane, numbered(64))
            await until(lambda burst=burst: len(lane.settled) == 128 * burst)  # type: ignore[misc]
    return model.sizes


@pytest.mark.parametrize("model", [lambda rows: 6.0 * rows], indirect=True)
@pytest.mark.parametrize("bad", [False, True])
async def test_batches_shrink_where_a_row_costs_the_same_in_them(model: Costly, bad: bool) -> None:
    sizes = await sizes_of(model, bad=bad)
    assert max(sizes[8:]) <= 2, sizes
    assert sizes[8:].count(1) > 0.9 * len(sizes[8:]), sizes


@pytest.mark.parametrize("model", [lambda rows: 20.0 + 0.2 * rows], indirect=True)
async def test_batches_stay_full_where_a_row_costs_less_in_them(model: Costly) -> None:
    sizes = await sizes_of(model, bad=False)
    assert sizes.count(32) >= 0.6 * len(sizes), sizes
