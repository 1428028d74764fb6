"""One contract, held by the budget in memory and by the one on real servers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from schemas.rules_structs import BudgetRule, TenantRule
from streams.budget import Begin, Budget, MemoryBudget, Paid, RedisBudget, Reservation
from streams.budget.ledger import WINDOW_MS, kept_until
from streams.stores import RedisLink
from tests.helpers.redis import SERVERS, serve

NOW = 20_000 * WINDOW_MS + 3_600_000
SOON = NOW + 90_000
RULE = BudgetRule(per_day=1.0, per_tenant=0.6)
OWN = {"acme": TenantRule(per_day=0.2), "big": TenantRule()}


@pytest.fixture(scope="module", params=["memory", *SERVERS])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str | None]:
    if request.param == "memory":
        yield None
        return
    folder: Path = tmp_path_factory.mktemp("redis")
    servers = serve(request.param, folder)
    yield next(servers).url
    assert next(servers, None) is None


@pytest.fixture
async def budget(url: str | None) -> AsyncIterator[Budget]:
    if url is None:
        yield MemoryBudget(RULE, OWN)
        return
    link = RedisLink(url, timeout_s=5.0)
    await link.call("FLUSHALL")
    budget = RedisBudget(link, RULE, OWN)
    yield budget
    await budget.close()


def wish(number: int, cost: float, tenant: str | None = None, expires: int = SOON) -> Reservation:
    return Reservation(f"r{number}/s/cloud/0", tenant, cost, expires)


def start(number: int, nonce: str, cost: float, tenant: str | None = None, expires: int = SOON) -> Begin:
    return Begin(f"r{number}/s/cloud/0", nonce, tenant, cost, expires)


def paid(number: int, nonce: str, cost: float) -> Paid:
    return Paid(f"r{number}/s/cloud/0", nonce, cost)


async def sums(budget: Budget, now: int = NOW) -> tuple[float, float]:
    total = (await budget.spend(now)).total
    return total.spent, total.reserved


async def test_a_ceiling_is_reached_and_not_passed(budget: Budget) -> None:
    wanted = [wish(n, 0.25, "big" if n % 2 else None) for n in range(6)]
    assert await budget.reserve(wanted, NOW) == [True] * 4 + [False] * 2
    assert await sums(budget) == (0.0, 1.0)
    assert await budget.reserve([wish(9, 0.000_001)], NOW) == [False]


async def test_a_tenant_has_its_own_ceiling_or_that_of_each_and_so_have_those_without_a_name(
    budget: Budget,
) -> None:
    for tenant, limit in (("acme", 0.2), (None, 0.6)):
        over = [wish(1, limit, tenant), wish(2, 0.01, tenant)]
        assert await budget.reserve(
            [each._replace(subtask=f"{tenant}{each.subtask}") for each in over], NOW
        ) == [
            True,
            False,
        ]
    assert await budget.reserve([wish(3, 0.2, "other")], NOW) == [True]
    spend = await budget.spend(NOW)
    assert spend.window == NOW - NOW % WINDOW_MS
    assert spend.total == (1.0, 0.0, 1.0)
    assert spend.tenants == {
        "": (0.6, 0.0, 0.6),
        "acme": (0.2, 0.0, 0.2),
        "big": (0.6, 0.0, 0.0),
        "other": (0.6, 0.0, 0.2),
    }
    assert spend.tenants["acme"].left == 0.0


async def test_asking_again_sets_nothing_aside_twice_and_a_higher_cost_the_difference(budget: Budget) -> None:
    for cost, held in ((0.1, 0.1), (0.1, 0.1), (0.05, 0.1), (0.3, 0.3)):
        assert await budget.reserve([wish(1, cost)], NOW) == [True]
        assert await sums(budget) == (0.0, held)
    assert await budget.reserve([wish(1, 0.7)], NOW) == [False], "0.6 is the tenant's most"
    assert await sums(budget) == (0.0, 0.3)


async def test_begin_takes_the_reservation_and_settle_frees_what_was_too_much(budget: Budget) -> None:
    await budget.reserve([wish(1, 0.5)], NOW)
    assert await budget.begin([start(1, "n", 0.5)], NOW) == [True]
    assert await sums(budget) == (0.0, 0.5)
    await budget.settle([paid(1, "n", 0.2)], NOW)
    assert await sums(budget) == (0.2, 0.0)
    await budget.settle([paid(1, "n", 0.4)], NOW)
    assert await sums(budget) == (0.2, 0.0), "only the lowest counts"
    await budget.settle([("r1/s/cloud/0", "n", 0.1)], NOW)
    assert await sums(budget) == (0.1, 0.0)
    assert await budget.begin([start(1, "n", 0.5)], NOW) == [False], "that payment has ended"


async def test_every_execution_of_a_subtask_pays_for_itself_or_is_refused(budget: Budget) -> None:
    await budget.reserve([wish(1, 0.25)], NOW)
    asks = [start(1, nonce, 0.25) for nonce in ("a", "b", "a", "c")]
    assert await budget.begin(asks, NOW) == [True, True, True, False], "0.6 is the most of no tenant"
    assert await sums(budget) == (0.0, 0.5)
    await budget.settle([paid(1, "a", 0.25), paid(1, "b", 0.0)], NOW)
    assert await sums(budget) == (0.25, 0.0)


async def test_a_subtask_that_nobody_reserved_begins_where_there_is_room(budget: Budget) -> None:
    assert await budget.begin([start(1, "n", 0.4), start(2, "m", 0.4)], NOW) == [True, False]
    assert await budget.reserve([wish(1, 0.4)], NOW) == [True]
    assert await sums(budget) == (0.0, 0.4)


async def test_a_payment_that_costs_more_than_was_reserved_needs_the_room(budget: Budget) -> None:
    await budget.reserve([wish(1, 0.3), wish(2, 0.2)], NOW)
    assert await budget.begin([start(1, "n", 0.4), start(2, "n", 0.3)], NOW) == [True, False]
    assert await sums(budget) == (0.0, pytest.approx(0.6))
    await budget.release(["r2/s/cloud/0"], NOW)
    assert await sums(budget) == (0.0, pytest.approx(0.4))


async def test_what_is_released_is_free_and_never_begun(budget: Budget) -> None:
    await budget.reserve([wish(1, 0.5)], NOW)
    await budget.release(["r1/s/cloud/0", "unknown/s/cloud/0"], NOW)
    await budget.release(["r1/s/cloud/0"], NOW)
    assert await sums(budget) == (0.0, 0.0)
    assert await budget.begin([start(1, "n", 0.5)], NOW) == [False]
    assert await budget.reserve([wish(1, 0.5), wish(2, 0.6)], NOW) == [False, True]


async def test_a_release_leaves_what_is_being_paid_and_forbids_a_second_execution(budget: Budget) -> None:
    await budget.begin([start(1, "n", 0.2)], NOW)
    await budget.release(["r1/s/cloud/0"], NOW)
    assert await sums(budget) == (0.0, 0.2)
    assert await budget.begin([start(1, "m", 0.2)], NOW) == [False]
    await budget.settle([paid(1, "n", 0.1)], NOW)
    assert await sums(budget) == (0.1, 0.0)


async def test_what_was_never_begun_is_free_at_its_time_and_what_was_begun_is_spent(budget: Budget) -> None:
    await budget.reserve([wish(1, 0.2), wish(2, 0.3)], NOW)
    await budget.begin([start(2, "n", 0.3)], NOW)
    assert await sums(budget, SOON - 1) == (0.0, 0.5)
    assert await sums(budget, SOON) == (0.3, 0.0)
    await budget.settle([paid(2, "n", 0.1)], SOON + 60_000)
    assert await sums(budget, SOON + 60_000) == (0.1, 0.0), "a later actual takes back what was too much"
    assert await budget.begin([start(1, "m", 0.2)], SOON) == [False], "too late to pay"
    assert await budget.reserve([wish(5, 0.2)], SOON) == [False]


async def test_a_reservation_is_settled_in_the_day_in_which_it_was_made(budget: Budget) -> None:
    midnight = kept_until(20_000) - WINDOW_MS
    before, after = midnight - 10, midnight + 10
    expires = midnight + 60_000
    await budget.reserve([wish(1, 0.4, None, expires), wish(2, 0.2, None, expires)], before)
    assert await budget.begin([start(1, "n", 0.4, None, expires)], after) == [True]
    assert await sums(budget, after) == (0.0, 0.0)
    assert await budget.reserve([wish(3, 0.6, None, expires)], after) == [True]
    await budget.settle([paid(1, "n", 0.3)], after)
    assert await sums(budget, before) == (0.3, 0.2)
    assert (await sums(budget, expires), await sums(budget, before)) == ((0.0, 0.0), (0.3, 0.0))


async def test_a_clock_that_lags_by_days_begins_no_closed_day_anew(budget: Budget) -> None:
    await budget.reserve([wish(1, 0.6)], NOW)
    await budget.begin([start(1, "n", 0.6)], NOW)
    later = NOW + 3 * WINDOW_MS
    assert await budget.reserve([wish(2, 0.6, "x", later + 1000)], later) == [True]
    assert (await budget.spend(NOW)).window == later - later % WINDOW_MS - WINDOW_MS


async def test_rules_are_followed_from_the_next_call_on(budget: Budget) -> None:
    assert await budget.reserve([wish(1, 0.7, "x")], NOW) == [False]
    budget.adopt(BudgetRule(), {})
    assert await budget.reserve([wish(1, 700.0, "x")], NOW) == [True]
    assert (await budget.spend(NOW)).total == (None, 0.0, 700.0)
    budget.adopt(BudgetRule(per_day=0.5), {})
    assert await budget.reserve([wish(2, 0.01, "x")], NOW) == [False]


async def test_more_than_the_bound_is_recorded_and_told(
    budget: Budget, caplog: pytest.LogCaptureFixture
) -> None:
    before = REGISTRY.get_sample_value("edgeway_budget_overrun_total") or 0.0
    await budget.begin([start(1, "n", 0.2)], NOW)
    await budget.settle([paid(1, "n", 0.3)], NOW)
    assert await sums(budget) == (0.3, 0.0)
    assert REGISTRY.get_sample_value("edgeway_budget_overrun_total") == pytest.approx(before + 0.1)
    assert len([record for record in caplog.records if record.levelno == logging.ERROR]) == 1


async def test_the_gauges_follow_and_strangers_are_one_label(budget: Budget) -> None:
    def shown(name: str, tenant: str) -> float | None:
        return REGISTRY.get_sample_value(f"edgeway_budget_{name}", {"tenant": tenant})

    await budget.spend(NOW)
    await budget.begin([start(1, "n", 0.1, "acme"), start(2, "n", 0.2, "stranger")], NOW)
    await budget.settle([paid(2, "n", 0.15)], NOW)
    assert (shown("reserved", "all"), shown("spent", "all")) == (pytest.approx(0.1), pytest.approx(0.15))
    assert (shown("reserved", "acme"), shown("limit", "acme")) == (0.1, 0.2)
    assert (shown("spent", "other"), shown("spent", "stranger")) == (pytest.approx(0.15), None)
    budget.adopt(RULE, {})
    assert shown("limit", "acme") is None


async def test_refusals_are_counted_by_reason(budget: Budget) -> None:
    def count(reason: str) -> float:
        found = REGISTRY.get_sample_value("edgeway_budget_refusals_total", {"reason": reason})
        return found or 0.0

    before = {reason: count(reason) for reason in ("total", "tenant", "late", "released", "again")}
    await budget.reserve([wish(1, 0.3, "acme"), wish(2, 0.5, "a"), wish(3, 0.5, "b"), wish(4, 0.1, "c")], NOW)
    await budget.reserve([wish(5, 0.1, None, NOW)], NOW)
    await budget.release(["r2/s/cloud/0"], NOW)
    await budget.begin([start(2, "n", 0.5, "a"), start(6, "n", 0.1)], NOW)
    await budget.settle([paid(6, "n", 0.1)], NOW)
    await budget.begin([start(6, "n", 0.1)], NOW)
    assert {reason: count(reason) - before[reason] for reason in before} == dict.fromkeys(before, 1.0)


async def test_no_calls_no_answers(budget: Budget) -> None:
    assert await budget.reserve([], NOW) == []
    assert await budget.begin([], NOW) == []
    await budget.settle([], NOW)
    await budget.release([], NOW)


async def test_many_at_once_share_one_ceiling(budget: Budget) -> None:
    calls = [budget.begin([start(n, "n", 0.01, f"t{n % 7}")], NOW) for n in range(150)]
    answers = await asyncio.gather(*calls)
    assert sum(granted for (granted,) in answers) == 100
    assert await sums(budget) == (0.0, 1.0)


async def test_the_memory_of_a_day_is_gone_two_days_later() -> None:
    budget = MemoryBudget(BudgetRule(), {})
    for n in range(50):
        await budget.begin([start(n, "n", 0.1, f"t{n}")], NOW)
    await budget.spend(SOON)
    assert len(budget) == 50, "what is unknown may still be settled"
    await budget.spend(NOW + 2 * WINDOW_MS)
    assert len(budget) == 0
    assert (await budget.spend(NOW + 2 * WINDOW_MS)).tenants == {}
