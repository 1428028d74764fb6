"""What a worker does about money: it asks before it pays, and settles before it answers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from schemas.cards import Card
from schemas.messages import Failure
from schemas.rules_structs import BudgetRule, Price
from streams.budget import GRACE_MS, Begin, ClosedBudget, MemoryBudget, Paid, Reservation
from streams.stores import StoreUnavailable
from tests.helpers.lanes import FakeClock, FakeLane, record, subtask
from tests.workers.test_worker import Gated, card, handle, until
from workers import payments
from workers.backends import Answer, Row
from workers.payments import BudgetPayer
from workers.worker import Worker

TOLL = 0.25


class Toll:
    """A paid backend that notes its batches; `answer` makes the answers, or raises."""

    def __init__(self, answer: Any = None, its: Card | None = None) -> None:
        self.card = its or card()
        self.batches: list[int] = []
        self._answer = answer or (lambda row: Answer(row.inputs["n"], cost=TOLL))

    async def load(self) -> None: ...

    def kin(self, row: Row) -> Any:
        return 0

    def infer(self, rows: Sequence[Row]) -> list[Answer]:
        self.batches.append(len(rows))
        return [self._answer(row) for row in rows]

    def close(self) -> None: ...


class Watched(MemoryBudget):
    """Notes the calls; raises while `away`."""

    def __init__(self, per_day: float) -> None:
        super().__init__(BudgetRule(per_day=per_day))
        self.calls: list[str] = []
        self.away: set[str] = set()

    async def begin(self, asks: Sequence[Begin], now: int) -> list[bool]:
        self.calls.append("begin")
        granted = await super().begin(asks, now)
        if "begin" in self.away:
            raise StoreUnavailable("away")
        return granted

    async def settle(self, paid: Sequence[Paid | tuple[str, str, float]], now: int) -> None:
        if "settle" in self.away:
            raise StoreUnavailable("away")
        self.calls.append("settle")
        await super().settle(paid, now)


CLOCK = FakeClock()


def works(count: int, max_cost: float = TOLL, **fields: Any) -> list[Any]:
    return [record(subtask(n, inputs={"n": n}, max_cost=max_cost, **fields), n) for n in range(count)]


async def run(backend: Any, budget: Any, records: list[Any], *, prices: Any = None) -> FakeLane:
    """All records answered by one worker."""
    lane, payer = FakeLane(), BudgetPayer(budget, CLOCK)
    worker = Worker([backend], name="w", clock=CLOCK, payer=payer)
    worker.price(prices or {})
    await worker.start()
    try:
        await handle(worker, lane, records)
        await until(lambda: len(lane.settled) == len(records))
    finally:
        await worker.stop(5)
        await payer.stop()
    return lane


def codes(lane: FakeLane) -> list[str | None]:
    return [partial.error.code if partial.error else None for _, partial in sorted(lane.partials().items())]


async def sums(budget: MemoryBudget, at: int | None = None) -> tuple[float, float]:
    total = (await budget.spend(CLOCK.now() if at is None else at)).total
    return total.spent, total.reserved


async def test_a_batch_is_begun_and_settled_in_one_call_each_before_its_partials() -> None:
    budget = Watched(per_day=10)
    backend = Toll()
    lane = await run(backend, budget, works(8))
    assert codes(lane) == [None] * 8
    assert {partial.cost for partial in lane.partials().values()} == {TOLL}
    assert await sums(budget) == (8 * TOLL, 0.0)
    assert budget.calls.count("begin") == budget.calls.count("settle") == len(backend.batches)


async def test_what_the_ceiling_does_not_allow_never_reaches_the_model_and_the_rest_does() -> None:
    budget, backend = Watched(per_day=2.5 * TOLL), Toll()
    lane = await run(backend, budget, works(6))
    assert sorted(map(str, codes(lane))) == ["None", "None", *["over_budget"] * 4]
    assert sum(backend.batches) == 2
    assert await sums(budget) == (2 * TOLL, 0.0)
    (failure,) = {partial.error for partial in lane.partials().values() if partial.error}
    assert failure == payments.REFUSED
    assert budget.calls.count("begin") <= 6, "asked once, never again"


async def test_a_reservation_of_the_router_is_what_is_paid_from() -> None:
    budget = Watched(per_day=TOLL)
    record_ = works(1)
    expires = subtask().deadline + GRACE_MS
    assert await budget.reserve([Reservation("r0/step/local/0", None, TOLL, expires)], CLOCK.now()) == [True]
    assert codes(await run(Toll(), budget, record_)) == [None]
    assert await sums(budget) == (TOLL, 0.0)


async def test_free_work_asks_nobody() -> None:
    budget = Watched(per_day=0)
    assert codes(await run(Toll(), budget, works(5, max_cost=0.0))) == [None] * 5
    assert budget.calls == []


async def test_without_the_store_nothing_is_paid_and_what_was_begun_unheard_is_taken_back() -> None:
    budget, backend = Watched(per_day=10), Toll()
    budget.away = {"begin"}
    lane = await run(backend, budget, [*works(3), *(works(4, max_cost=0.0)[3:])])
    assert codes(lane) == ["over_budget"] * 3 + [None]
    assert sum(backend.batches) == 1
    assert {p.error for p in lane.partials().values() if p.error} == {payments.AWAY}
    assert await sums(budget) == (0.0, 0.0), "told at the stop that nothing was paid"


async def test_a_role_without_a_ledger_pays_for_nothing() -> None:
    assert codes(await run(Toll(), ClosedBudget(), works(2))) == ["over_budget"] * 2


async def test_an_answer_is_published_though_the_settling_fails_and_is_settled_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(payments, "LATER_S", 0.05)
    budget = Watched(per_day=10)
    budget.away = {"settle"}
    lane, payer = FakeLane(), BudgetPayer(budget, CLOCK)
    worker = Worker([Toll(lambda row: Answer(1, cost=0.1))], name="w", clock=CLOCK, payer=payer)
    await worker.start()
    await handle(worker, lane, works(3))
    await until(lambda: len(lane.settled) == 3)
    assert await sums(budget) == (0.0, 3 * TOLL)
    assert (await sums(budget, subtask().deadline + GRACE_MS)) == (3 * TOLL, 0.0), "unknown counts as spent"
    budget.away = set()
    await until(lambda: "settle" in budget.calls)
    assert (await sums(budget))[0] == pytest.approx(0.3)
    await worker.stop(5)
    await payer.stop()


def _fail(error: Exception) -> Any:
    def answer(row: Row) -> Answer:
        raise error

    return answer


def _said(code: Any, cost: float | None = None) -> Any:
    return lambda row: Answer(error=Failure(code=code, message="no"), cost=cost)


@pytest.mark.parametrize(
    ("answer", "cost", "code"),
    [
        (_fail(RuntimeError("cut off")), TOLL, "backend_error"),
        (_fail(ValueError("bad")), 0.0, "bad_input"),
        (_said("backend_error"), TOLL, "backend_error"),
        (_said("backend_error", 0.1), 0.1, "backend_error"),
        (_said("deadline_exceeded"), TOLL, "deadline_exceeded"),
        (_said("bad_input"), 0.0, "bad_input"),
        (lambda row: Answer(1, cost=float("nan")), TOLL, "bad_output"),
        (lambda row: Answer(object(), cost=0.1), 0.1, "bad_output"),
    ],
)
async def test_an_error_costs_what_the_backend_says_and_else_the_bound_unless_it_refused(
    answer: Any, cost: float, code: str
) -> None:
    budget = Watched(per_day=10)
    lane = await run(Toll(answer), budget, works(1))
    assert codes(lane) == [code]
    assert lane.partials()[0].cost == cost
    assert await sums(budget) == (cost, 0.0)


async def test_a_paid_batch_that_breaks_is_not_tried_row_by_row() -> None:
    class Breaking(Toll):
        def infer(self, rows: Sequence[Row]) -> list[Answer]:
            self.batches.append(len(rows))
            raise RuntimeError("after the money was gone")

    budget, backend = Watched(per_day=10), Breaking()
    lane = await run(backend, budget, works(4))
    assert codes(lane) == ["backend_error"] * 4
    assert sum(backend.batches) == 4
    assert await sums(budget) == (4 * TOLL, 0.0)


@pytest.mark.parametrize(
    ("price", "usage", "cost"),
    [
        (Price(per_call=0.1), {}, 0.1),
        (Price(per_call=0.1, per_1k_tokens=1.0, max_cost=TOLL), {"tokens": 50}, 0.15),
        (Price(per_call=0.1, per_1k_tokens=1.0, max_cost=TOLL), {}, TOLL),
        (None, {}, 0.03),
    ],
)
async def test_the_rules_price_stands_over_the_cards(price: Price | None, usage: Any, cost: float) -> None:
    budget = Watched(per_day=10)
    backend = Toll(lambda row: Answer(1, usage=usage), card(cost_per_call=0.03))
    prices = {} if price is None else {"local/vision/digits": price}
    lane = await run(backend, budget, works(1), prices=prices)
    assert lane.partials()[0].cost == pytest.approx(cost)
    assert (await sums(budget))[0] == pytest.approx(cost)


async def test_a_revoked_lane_pays_for_nothing_that_has_not_run() -> None:
    budget, backend, lane = Watched(per_day=10), Toll(), FakeLane()
    held = asyncio.Event()
    plain = budget.begin

    async def slow(asks: Sequence[Begin], now: int) -> list[bool]:
        await held.wait()
        return await plain(asks, now)

    budget.begin = slow  # type: ignore[method-assign]
    payer = BudgetPayer(budget, CLOCK)
    worker = Worker([backend], name="w", clock=CLOCK, payer=payer)
    await worker.start()
    await handle(worker, lane, works(2))
    await until(lambda: worker.pending == 2)
    lane.alive = False
    held.set()
    await until(lambda: worker.pending == 0)
    await worker.stop(5)
    assert backend.batches == []
    assert await sums(budget) == (0.0, 0.0)


async def test_a_stop_waits_for_what_is_paid_for_and_settles_it() -> None:
    budget, backend, lane = Watched(per_day=10), Gated(), FakeLane()
    worker = Worker([backend], name="w", clock=CLOCK, payer=BudgetPayer(budget, CLOCK))
    worker.price({"local/vision/digits": Price(per_call=0.2)})
    await worker.start()
    await handle(worker, lane, works(1))
    await until(backend.entered.is_set)
    stopping = asyncio.create_task(worker.stop(5))
    await asyncio.sleep(0.02)
    backend.gate.set()
    await stopping
    assert codes(lane) == [None]
    assert await sums(budget) == (0.2, 0.0)
