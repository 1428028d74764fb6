"""The laws of the budget under crashes between any two steps, duplicates, window edges and clocks apart.

The ledger in memory and the one on a real server get the same calls: both must keep the laws and agree.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine

from schemas.rules_structs import BudgetRule, TenantRule
from streams.budget import Begin, Budget, MemoryBudget, Paid, RedisBudget, Reservation, Spend
from streams.budget.ledger import WINDOW_MS
from streams.stores import RedisLink
from tests.helpers.redis import serve

DAY = 20_000
EDGE = (DAY + 1) * WINDOW_MS
TENANTS = (None, "a", "b")
RULE = BudgetRule(per_day=0.01, per_tenant=0.006)
OWN = {"a": TenantRule(per_day=0.004)}
LIMITS = {"": 6000, "a": 4000, "b": 6000}
TOTAL = 10_000
Lost = st.sampled_from(("no", "no", "no", "before", "after"))
MOST_SKEW = 3000
Skew = st.integers(-MOST_SKEW, MOST_SKEW)


class Job(NamedTuple):
    subtask: str
    tenant: str | None
    micros: int
    expires: int


def micros(amount: float) -> int:
    return round(amount * 1_000_000)


class Calls(RuleBasedStateMachine):
    """Callers that crash. Every call is lost before it reaches the ledger, or its answer is, or neither."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.ledgers: list[Budget] = [MemoryBudget(RULE, OWN), *self.others()]
        self.now = EDGE - 60_000
        self.skewed = False
        self.jobs: list[Job] = []
        self.made: list[tuple[str, Any]] = []
        self.begun: dict[tuple[str, str], int] = {}  # as the ledger granted it, answer lost or not
        self.charged: dict[tuple[str, str], int] = {}  # what the provider took
        self.settled: dict[tuple[str, str], int] = {}  # the lowest that reached the ledger
        self.nonces = 0

    def others(self) -> list[Budget]:
        return []

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    def teardown(self) -> None:
        for ledger in self.ledgers:
            self.wait(ledger.close())
        self.loop.close()

    def ask(self, name: str, what: Any, skew: int) -> Any:
        """One call that reaches the ledger: all ledgers answer it alike."""
        at = self.now + (skew if self.skewed else 0)
        first, *rest = [self.wait(getattr(ledger, name)(what, at)) for ledger in self.ledgers]
        assert all(each == first for each in rest)
        self.made.append((name, what))
        if name == "begin":
            for each, granted in zip(what, first, strict=True):
                if granted:
                    self.begun[each.subtask, each.nonce] = micros(each.cost)
        elif name == "settle":
            for subtask, nonce, cost in what:
                if (subtask, nonce) in self.begun:
                    lowest = self.settled.get((subtask, nonce), micros(cost))
                    self.settled[subtask, nonce] = min(lowest, micros(cost))
        return first

    def spends(self, at: int) -> list[Spend]:
        return [self.wait(ledger.spend(at)) for ledger in self.ledgers]

    @initialize(skewed=st.booleans())
    def clocks(self, skewed: bool) -> None:
        self.skewed = skewed

    @rule(tenant=st.sampled_from(TENANTS), cost=st.integers(1, 3000), life=st.integers(1, 90_000))
    def arrive(self, tenant: str | None, cost: int, life: int) -> None:
        self.jobs.append(Job(f"{tenant}/{len(self.jobs)}/s/cloud/0", tenant, cost, self.now + life))

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), lost=Lost, skew=Skew)
    def reserve(self, data: st.DataObject, lost: str, skew: int) -> None:
        jobs = data.draw(st.lists(st.sampled_from(self.jobs), min_size=1, max_size=4))
        if lost != "before":
            wanted = [Reservation(job.subtask, job.tenant, job.micros / 1e6, job.expires) for job in jobs]
            self.ask("reserve", wanted, skew)

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), lost=Lost, skew=Skew, used=st.floats(0, 1))
    def pay(self, data: st.DataObject, lost: str, skew: int, used: float) -> None:
        jobs = data.draw(st.lists(st.sampled_from(self.jobs), min_size=1, max_size=3))
        asks = []
        for job in jobs:
            self.nonces += 1
            asks.append(Begin(job.subtask, f"n{self.nonces}", job.tenant, job.micros / 1e6, job.expires))
        if lost == "before":
            return
        granted = self.ask("begin", asks, skew)
        if lost == "after":
            return
        for job, ask, may in zip(jobs, asks, granted, strict=True):
            if may:
                self.charged[ask.subtask, ask.nonce] = int(used * job.micros)

    @precondition(lambda self: self.charged)
    @rule(data=st.data(), lost=Lost, skew=Skew)
    def settle(self, data: st.DataObject, lost: str, skew: int) -> None:
        paid = data.draw(st.lists(st.sampled_from(sorted(self.charged)), min_size=1, max_size=3))
        if lost != "before":
            self.ask("settle", [Paid(*key, self.charged[key] / 1e6) for key in paid], skew)

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), skew=Skew)
    def release(self, data: st.DataObject, skew: int) -> None:
        self.ask("release", [data.draw(st.sampled_from(self.jobs)).subtask], skew)

    @precondition(lambda self: self.made)
    @rule(data=st.data(), skew=Skew)
    def repeat(self, data: st.DataObject, skew: int) -> None:
        """A call comes once more: a retry on a fresh connection, or one that was long under way."""
        name, what = data.draw(st.sampled_from(self.made))
        if not (self.skewed and name == "begin"):
            self.ask(name, what, skew)

    @rule(ms=st.one_of(st.integers(0, 5000), st.integers(0, 120_000)))
    def pass_time(self, ms: int) -> None:
        self.now += ms

    @precondition(lambda self: self.now < EDGE)
    @rule(late=st.integers(-2, 2))
    def pass_to_the_edge(self, late: int) -> None:
        self.now = max(self.now, EDGE + late)

    @invariant()
    def no_ceiling_is_exceeded_and_all_that_was_paid_is_counted(self) -> None:
        counted = 0
        # A clock that runs ahead may have begun the next day already.
        begun = (max(EDGE, self.now),) if self.now + MOST_SKEW >= EDGE else ()
        for at in (min(EDGE - 60_000, self.now), *begun):
            first, *rest = self.spends(at)
            assert all(each == first for each in rest)
            assert micros(first.total.spent + first.total.reserved) <= TOTAL
            counted += micros(first.total.spent + first.total.reserved)
            for tenant, balance in first.tenants.items():
                assert balance.limit == LIMITS[tenant] / 1e6
                assert micros(balance.spent + balance.reserved) <= LIMITS[tenant]
            assert micros(sum(each.spent for each in first.tenants.values())) == micros(first.total.spent)
            assert min(b.reserved for b in (first.total, *first.tenants.values())) >= 0
        assert sum(self.charged.values()) <= counted

    def drained(self) -> None:
        """After all has expired nothing is reserved, and all money is accounted for to the millionth."""
        self.now = max([self.now, EDGE, *(job.expires for job in self.jobs)]) + 10_000
        spent = 0
        for at in (self.now, EDGE - 1):
            for spend in self.spends(at):
                assert spend.total.reserved == 0.0
                assert all(balance.reserved == 0.0 for balance in spend.tenants.values())
            spent += micros(spend.total.spent)
        assert spent == sum(self.settled.get(key, cost) for key, cost in self.begun.items())
        room = Reservation("new/s/cloud/0", None, 0.000_001, self.now + 1000)
        left = spend_left(self.spends(self.now)[0])
        assert self.ask("reserve", [room], 0) == [left >= 1]


def spend_left(spend: Spend) -> int:
    own = spend.tenants.get("")
    return min(TOTAL - micros(spend.total.spent), LIMITS[""] - (micros(own.spent) if own else 0))


class Drained(Calls):
    def teardown(self) -> None:
        try:
            self.drained()
        finally:
            super().teardown()


def test_the_ledger_in_memory_keeps_the_laws() -> None:
    run_machine(Drained, settings=settings(max_examples=100, stateful_step_count=40, deadline=None))


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    servers = serve("wheel", tmp_path_factory.mktemp("redis"))
    yield next(servers).url
    assert next(servers, None) is None


def test_the_ledger_on_redis_keeps_the_laws_and_agrees_with_the_one_in_memory(url: str) -> None:
    class Both(Drained):
        def others(self) -> list[Budget]:
            link = RedisLink(url, timeout_s=5.0)
            self.wait(link.call("FLUSHALL"))
            return [RedisBudget(link, RULE, OWN)]

    few = settings(
        max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
    )
    run_machine(Both, settings=few)
