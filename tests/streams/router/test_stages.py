"""Budget and cache as the router asks them, whatever they do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest

from schemas import codec
from schemas.cards import Card, Heartbeat, Live, Offer
from schemas.messages import Partial, Plan, Result, Verdict
from schemas.rules import Rules
from streams.budget import MemoryBudget, Reservation
from streams.cache import NOTHING, MemoryCache, answer_entry, over_key, stamped, step_entry
from streams.degraded import INACCURATE
from streams.delivery import Batch
from streams.registry import Registry
from streams.router import Planner, Router
from streams.router.round import BREATH_S
from streams.stores import StoreUnavailable
from tests.helpers.routing import NOW, RequestLane, Words, asked, record_in, ruled, topic_of

IN = {"text": "where is my card"}
PRICE = 1.0
BUDGET = {"budget": {"per_day": 2.5}}


class Clock:
    def __init__(self) -> None:
        self.ms = NOW + 10

    def now(self) -> int:
        return self.ms


def rules_of(task: dict[str, Any] | None = None, **more: Any) -> Rules:
    return ruled({"intent": task or {}, "away": {"side": "cloud"}}, **more)


def registry_of(rules: Rules) -> Registry:
    registry = Registry()
    offers = tuple(
        Offer(
            card=Card(
                capability=capability,
                side=side,
                version="1",
                model="m",
                calibrated=side == "local",
                cacheable=True,
                max_cost=PRICE if side == "cloud" else 0.0,
                cost_per_call=PRICE if side == "cloud" else 0.0,
            ),
            live=Live(p50_ms=5.0, p90_ms=9.0, served=50),
        )
        for side, capability in rules.capabilities
    )
    registry.observe(Heartbeat(worker="w1", offers=offers), NOW)
    return registry


def router_of(rules: Rules, examiner: Any = None, **how: Any) -> Router:
    planner = Planner(rules, examiner=examiner)
    return Router(planner, registry_of(rules), how.pop("clock", Clock()), **how)


async def handled(router: Router, *records: Any, lane: RequestLane | None = None) -> RequestLane:
    lane = lane or RequestLane()
    await router.handle(Batch(lane, list(records)))  # type: ignore[arg-type]
    return lane


class Counting:
    """A budget or a cache that counts calls, and can be away or slow."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.calls = inner, []
        self.away = False
        self.slow_s = 0.0

    def __getattr__(self, name: str) -> Any:
        async def call(*args: Any) -> Any:
            self.calls.append(name)
            if self.slow_s:
                await asyncio.sleep(self.slow_s)
            if self.away:
                raise StoreUnavailable("away")
            return await getattr(self.inner, name)(*args)

        return call


def budget_of(rules: Rules) -> Counting:
    return Counting(MemoryBudget(rules.budget, rules.tenants))


class TestBudget:
    async def test_each_request_is_paid_for_before_it_is_published_or_stays_local(self):
        rules = rules_of(**BUDGET)
        budget = budget_of(rules)
        router = router_of(rules, budget=budget)
        lane = await handled(router, *[asked(n, id=f"r{n}", task="intent", inputs=IN) for n in range(4)])
        sides = [[attempt.side for attempt in plan.steps[0].attempts] for plan in lane.plans]
        assert sides == [["local", "cloud"], ["local", "cloud"], ["local"], ["local"]]
        assert lane.plans[2].decisions[0].forbidden == {"cloud": ("budget",)}
        assert (await budget.inner.spend(NOW)).total.reserved == 2 * PRICE
        assert budget.calls.count("reserve") == 1

    async def test_what_must_be_paid_and_cannot_is_refused(self):
        rules = rules_of(budget={"per_day": 0.5})
        lane = await handled(
            router_of(rules, budget=budget_of(rules)), asked(id="r1", task="away", inputs=IN)
        )
        (plan,) = lane.plans
        assert plan.answer is not None
        assert plan.answer.error is not None
        assert plan.answer.error.code == "no_placement"
        assert "budget" in plan.answer.error.message

    async def test_all_of_a_request_or_nothing(self):
        steps = [{"name": "a", "side": "cloud"}, {"name": "b", "side": "cloud"}]
        rules = rules_of({"steps": steps}, budget={"per_day": 1.5})
        budget = budget_of(rules)
        lane = await handled(router_of(rules, budget=budget), asked(id="r1", task="intent", inputs=IN))
        assert lane.plans[0].answer is not None
        balance = (await budget.inner.spend(NOW)).total
        assert (balance.reserved, balance.spent) == (0.0, 0.0)

    async def test_redelivery_reserves_nothing_twice(self):
        rules = rules_of(**BUDGET)
        budget = budget_of(rules)
        router = router_of(rules, budget=budget)
        record = asked(1, id="r1", task="intent", inputs=IN)
        once, again = await handled(router, record), await handled(router, record)
        assert once.plans == again.plans
        assert (await budget.inner.spend(NOW)).total.reserved == PRICE

    @pytest.mark.parametrize("slow", [False, True])
    async def test_away_or_slow_means_no_cloud_and_no_request_lost(self, slow):
        rules = rules_of(**BUDGET)
        budget = budget_of(rules)
        budget.away, budget.slow_s = not slow, 30.0 if slow else 0.0
        router = router_of(rules, budget=budget)
        began = time.monotonic()
        lane = await handled(
            router, asked(0, id="r0", task="intent", inputs=IN), asked(1, id="r1", task="away", inputs=IN)
        )
        assert time.monotonic() - began < 3.0
        assert [topic for topic, _ in lane.subtasks] == ["local.intent"]
        assert [plan.answer is None for plan in lane.plans] == [True, False]
        budget.away, budget.slow_s = False, 0.0
        lane = await handled(router, asked(2, id="r2", task="away", inputs=IN))
        assert [topic for topic, _ in lane.subtasks] == ["cloud.away"]

    async def test_what_costs_nothing_asks_nobody(self):
        rules = rules_of({"side": "local"}, **BUDGET)
        budget = budget_of(rules)
        await handled(router_of(rules, budget=budget), asked(id="r1", task="intent", inputs=IN))
        assert "reserve" not in budget.calls

    async def test_a_plan_that_cannot_be_written_gives_back(self):
        rules = rules_of(**BUDGET)
        budget = budget_of(rules)
        large = {"text": "x" * (2**20 - 100)}
        lane = await handled(router_of(rules, budget=budget), asked(id="r1", task="away", inputs=large))
        assert lane.plans[0].answer is not None
        assert (await budget.inner.spend(NOW)).total.reserved == 0.0

    async def test_a_budget_that_answers_wrong_is_a_bug_and_settles_nothing(self):
        class Short(MemoryBudget):
            async def reserve(self, wanted: Sequence[Reservation], now: int) -> list[bool]:
                return []

        lane = RequestLane()
        with pytest.raises(ValueError, match="shorter"):
            await handled(
                router_of(rules_of(**BUDGET), budget=Short()),
                asked(id="r1", task="away", inputs=IN),
                lane=lane,
            )
        assert lane.settles == []


def result_of(plan: Plan, at: int = NOW) -> bytes:
    entry = answer_entry(
        Result(
            id=plan.request.id,
            status="ok",
            output={"label": "card"},
            tenant=plan.request.tenant,
            task=plan.request.task,
            rules=plan.rules,
            decisions=plan.decisions,
            privacy=Verdict(),
        )
    )
    assert entry is not None
    return stamped(entry, at)


@pytest.fixture
def cache() -> MemoryCache:
    return MemoryCache(time.monotonic)


async def following(router: Router) -> asyncio.Task[None]:
    task = asyncio.create_task(router.follow())
    await asyncio.sleep(0)
    return task


async def until(condition: Any, limit_s: float = 3.0) -> None:
    async with asyncio.timeout(limit_s):
        while not condition():
            await asyncio.sleep(0.005)


class TestCache:
    async def test_an_equal_request_is_answered_from_the_cache(self, cache):
        router = router_of(rules_of(), cache=cache)
        (first,) = (await handled(router, asked(0, id="r0", task="intent", inputs=IN))).plans
        assert first.cache is not None
        await cache.put([(first.cache, result_of(first))], 60.0)
        lane = await handled(
            router,
            asked(1, id="r1", task="intent", inputs=IN),
            asked(2, id="r2", task="intent", inputs=IN, tenant="other"),
        )
        answer = lane.plans[0].answer
        assert answer is not None
        assert (answer.id, answer.cached, answer.output, answer.cost) == ("r1", True, {"label": "card"}, 0.0)
        assert answer.privacy == Verdict()
        assert lane.plans[1].answer is None

    async def test_one_round_trip_for_a_batch(self, cache):
        counting = Counting(cache)
        router = router_of(rules_of(), cache=counting)
        await handled(
            router, *[asked(n, id=f"r{n}", task="intent", inputs={"text": str(n)}) for n in range(9)]
        )
        assert counting.calls == ["get"]

    async def test_of_equal_requests_one_is_executed(self, cache):
        router = router_of(rules_of(), cache=cache)
        task = await following(router)
        lane = await handled(router, *[asked(n, id=f"r{n}", task="intent", inputs=IN) for n in range(3)])
        (first,) = lane.plans
        assert lane.settles[0][0] == [0]
        assert lane.absorbed == [1, 2]
        await cache.put([(str(first.cache), result_of(first))], 60.0)
        await until(lambda: len(lane.plans) == 3)
        assert [plan.request.id for plan in lane.plans[1:]] == ["r1", "r2"]
        assert all(plan.answer is not None and plan.answer.cached for plan in lane.plans[1:])
        assert [offsets for offsets, _ in lane.settles[1:]] == [[1], [2]]
        task.cancel()

    async def test_an_execution_without_an_answer_to_share_lets_the_others_run(self, cache):
        router = router_of(rules_of(), cache=cache)
        task = await following(router)
        lane = await handled(router, *[asked(n, id=f"r{n}", task="intent", inputs=IN) for n in range(3)])
        await cache.put([(str(lane.plans[0].cache), NOTHING)], 5.0)
        await until(lambda: len(lane.plans) == 3)
        assert len(lane.subtasks) == 3
        task.cancel()

    async def test_patience_has_an_end(self, cache):
        clock = Clock()
        router = router_of(rules_of(), cache=cache, clock=clock)
        task = await following(router)
        lane = await handled(router, *[asked(n, id=f"r{n}", task="intent", inputs=IN) for n in range(2)])
        assert len(lane.subtasks) == 1
        clock.ms += 5_000
        await until(lambda: len(lane.subtasks) == 2)
        task.cancel()

    async def test_who_is_sensitive_leads_nobody_and_is_not_kept(self, cache):
        router = router_of(rules_of(), Words(["card"]), cache=cache)
        lane = await handled(router, *[asked(n, id=f"r{n}", task="intent", inputs=IN) for n in range(3)])
        assert [plan.cache for plan in lane.plans] == [None, None, None]
        assert [topic for topic, _ in lane.subtasks] == ["local.intent"] * 3
        assert sorted(offset for offsets, _ in lane.settles for offset in offsets) == [0, 1, 2]

    async def test_a_refused_leader_holds_nobody(self, cache):
        rules = rules_of(budget={"per_day": 0.5})
        router = router_of(rules, cache=cache, budget=budget_of(rules))
        lane = await handled(router, *[asked(n, id=f"r{n}", task="away", inputs=IN) for n in range(3)])
        assert [plan.answer is not None for plan in lane.plans] == [True] * 3

    async def test_what_waits_on_a_lost_partition_is_dropped(self, cache):
        router = router_of(rules_of(), cache=cache)
        task = await following(router)
        lane = await handled(router, *[asked(n, id=f"r{n}", task="intent", inputs=IN) for n in range(2)])
        lane.alive = False
        router.revoked(lane)  # type: ignore[arg-type]
        await cache.put([(str(lane.plans[0].cache), result_of(lane.plans[0]))], 60.0)
        await asyncio.sleep(0.1)
        assert len(lane.plans) == 1
        task.cancel()

    @pytest.mark.parametrize("slow", [False, True])
    async def test_away_or_slow_everything_is_executed(self, cache, slow):
        counting = Counting(cache)
        counting.away, counting.slow_s = not slow, 30.0 if slow else 0.0
        router = router_of(rules_of(), cache=counting)
        lane = await handled(router, *[asked(n, id=f"r{n}", task="intent", inputs=IN) for n in range(3)])
        assert len(lane.subtasks) == 3
        assert lane.absorbed == []

    async def test_new_rules_count_for_those_who_waited(self, cache):
        router = router_of(rules_of(), cache=cache)
        task = await following(router)
        lane = await handled(router, *[asked(n, id=f"r{n}", task="intent", inputs=IN) for n in range(2)])
        other = rules_of({"side": "local"})
        router.adopt(Planner(other))
        await cache.put([(str(lane.plans[0].cache), result_of(lane.plans[0]))], 60.0)
        await until(lambda: len(lane.plans) == 2)
        assert lane.plans[1].rules == other.version
        assert lane.plans[1].answer is None
        task.cancel()

    async def test_one_step_of_several_is_answered_from_the_cache(self, cache):
        steps = [{"name": "a", "capability": "intent", "side": "cloud"}, {"name": "b", "cache": False}]
        rules = rules_of({"steps": steps}, budget={"per_day": 50.0})
        budget = budget_of(rules)
        router = router_of(rules, cache=cache, budget=budget)
        (plan,) = (await handled(router, asked(0, id="r0", task="intent", inputs=IN))).plans
        assert plan.cache is None
        key = plan.steps[0].cache
        assert key is not None
        assert plan.steps[1].cache is None
        entry = step_entry(Partial(subtask="r0/a/cloud/0", deadline=NOW, output={"x": 1}, cost=1.0))
        assert entry is not None
        await cache.put([(key, entry)], 60.0)
        before = (await budget.inner.spend(NOW)).total.reserved
        lane = await handled(router, asked(1, id="r1", task="intent", inputs=IN))
        joins = [record_in(output) for output in lane.outputs if topic_of(output) == "joins"]
        partial = codec.decode(joins[1].value, Partial)
        assert (partial.subtask, partial.cached, partial.cost) == ("r1/a/cloud/0", True, 0.0)
        assert joins[1].key == b"r1"
        assert [topic_of(output) for output in lane.outputs if topic_of(output) != "joins"] == ["local.b"]
        after = (await budget.inner.spend(NOW)).total.reserved
        assert after - before == (PRICE if len(plan.steps[1].attempts) > 1 else 0.0)


async def test_detectors_leave_the_loop_its_turns():
    examined, most, stop = 0, 0, False

    class Slow(Words):
        def __call__(self, request: Any) -> Verdict:
            nonlocal examined
            examined += 1
            until = time.perf_counter() + BREATH_S
            while time.perf_counter() < until:
                pass
            return Verdict()

    router = router_of(rules_of(), Slow())

    async def beat() -> None:
        nonlocal most
        last = 0
        while not stop:
            most, last = max(most, examined - last), examined
            await asyncio.sleep(0)

    task = asyncio.create_task(beat())
    await asyncio.sleep(0)
    await handled(router, *[asked(n, id=f"r{n}", task="intent", inputs=IN) for n in range(50)])
    stop = True
    await task
    # Counted, not timed: this machine may be busy.
    assert (examined, most) == (50, 1)


async def test_a_large_request_is_examined_off_the_loop():
    seen: list[str] = []

    class Where(Words):
        def __call__(self, request: Any) -> Verdict:
            import threading

            seen.append(threading.current_thread().name)
            return Verdict()

    router = router_of(rules_of(), Where())
    await handled(
        router,
        asked(0, id="r0", task="intent", inputs=IN),
        asked(1, id="r1", task="intent", inputs={"text": "x" * 20_000}),
    )
    assert seen[0] == "MainThread"
    assert seen[1] != "MainThread"


STALE = {"cache_s": 60, "stale_s": 600}
EARLIER = NOW - 500_000


class TestStandIns:
    """An answer too old to be given stands in where there is no other."""

    async def kept(self, cache: MemoryCache, router: Router, at: int = EARLIER, **request: Any) -> str:
        probe = asked(9, **{"id": "probe", "task": "intent", "inputs": IN, **request})
        (plan,) = (await handled(router, probe)).plans
        assert plan.cache is not None
        assert plan.stand_in is None
        await cache.put([(plan.cache, result_of(plan, at))], 600.0)
        router._shelf.flights.abandon(plan.cache)  # type: ignore[union-attr]
        return plan.cache

    async def test_an_older_answer_goes_with_the_plan(self, cache):
        router = router_of(rules_of(**STALE), cache=cache)
        await self.kept(cache, router)
        lane = await handled(router, asked(1, id="r1", task="intent", inputs=IN))
        (plan,) = lane.plans
        assert plan.answer is None
        assert len(lane.subtasks) == 1
        older = plan.stand_in
        assert older is not None
        assert (older.output, older.cached, older.approximate) == ({"label": "card"}, True, True)
        assert (older.age_ms, older.degraded, older.cost) == (NOW - EARLIER, ("stale_cache",), 0.0)

    async def test_one_that_is_fresh_answers_and_one_too_old_is_none(self, cache):
        router = router_of(rules_of(**STALE), cache=cache)
        await self.kept(cache, router, NOW + 10 - 60_000)
        (plan,) = (await handled(router, asked(1, id="r1", task="intent", inputs=IN))).plans
        assert plan.answer is not None
        assert (plan.answer.age_ms, plan.answer.approximate, plan.answer.degraded) == (None, False, ())
        other = {"text": "another"}
        await self.kept(cache, router, NOW + 9 - 600_000, inputs=other)
        (plan,) = (await handled(router, asked(2, id="r2", task="intent", inputs=other))).plans
        assert (plan.answer, plan.stand_in) == (None, None)

    @pytest.mark.parametrize(
        ("task", "more", "stands"),
        [
            ({"stale_s": 0}, STALE, False),
            ({"stale_s": 600}, {"cache_s": 60}, True),
            ({}, {"cache_s": 60}, False),
            ({"stale_s": 100}, STALE, False),
        ],
    )
    async def test_the_task_has_the_last_word(self, cache, task, more, stands):
        router = router_of(rules_of(task, **more), cache=cache)
        await self.kept(cache, router)
        (plan,) = (await handled(router, asked(1, id="r1", task="intent", inputs=IN))).plans
        assert (plan.stand_in is not None) == stands

    async def test_where_nothing_is_given_fresh_older_ones_still_stand_in(self, cache):
        router = router_of(rules_of(cache_s=0, stale_s=600), cache=cache)
        await self.kept(cache, router, NOW + 10)
        lane = await handled(router, *[asked(n, id=f"r{n}", task="intent", inputs=IN) for n in range(2)])
        assert [plan.stand_in is not None for plan in lane.plans] == [True, True]
        assert len(lane.subtasks) == 2, "nobody waits for an answer that is not to be shared"

    async def test_it_answers_at_once_where_no_side_is_left(self, cache):
        rules = rules_of(budget={"per_day": 1.5}, **STALE)
        budget = budget_of(rules)
        router = router_of(rules, cache=cache, budget=budget)
        await self.kept(cache, router, task="away")
        lane = await handled(router, asked(1, id="r1", task="away", inputs=IN))
        (plan,) = lane.plans
        answer = plan.answer
        assert lane.subtasks == []
        assert answer is not None
        assert (answer.status, answer.error, answer.output) == ("ok", None, {"label": "card"})
        assert answer.degraded == ("over_budget", "stale_cache")
        assert answer.warnings == (INACCURATE, "cached answer, 500 s old")
        assert (answer.approximate, answer.cached, answer.cost) == (True, True, 0.0)
        assert answer.decisions[0].forbidden["cloud"] == ("budget",)
        assert answer.id == "r1"

    async def test_never_for_what_is_sensitive_or_of_another_tenant(self, cache):
        rules = rules_of(**STALE)
        await self.kept(cache, router_of(rules, cache=cache))
        judged = router_of(rules, Words(["card"]), cache=cache)
        masked = router_of(rules, Words(maskable=["card"]), cache=cache)
        plain = router_of(rules, cache=cache)
        for router, more in (
            (judged, {}),
            (masked, {}),
            (plain, {"privacy": "high"}),
            (plain, {"tenant": "x"}),
        ):
            (plan,) = (await handled(router, asked(1, id="r1", task="intent", inputs=IN, **more))).plans
            assert plan.answer is None
            assert plan.stand_in is None

    async def test_a_request_that_is_wrong_itself_gets_its_error(self, cache):
        router = router_of(rules_of(**STALE), cache=cache)
        await self.kept(cache, router)
        (plan,) = (await handled(router, asked(1, id="r1", task="nothing", inputs=IN))).plans
        assert plan.answer is not None
        assert plan.answer.error is not None

    async def test_an_older_answer_is_a_miss_of_which_one_is_executed(self, cache):
        router = router_of(rules_of(**STALE), cache=cache)
        task = await following(router)
        key = await self.kept(cache, router)
        lane = await handled(router, *[asked(n, id=f"r{n}", task="intent", inputs=IN) for n in range(3)])
        assert [plan.request.id for plan in lane.plans] == ["r0"]
        await asyncio.sleep(0.1)
        assert len(lane.plans) == 1, "the older answer wakes nobody"
        await cache.put([(over_key(key), NOTHING)], 5.0)
        await until(lambda: len(lane.plans) == 3)
        assert all(plan.stand_in is not None for plan in lane.plans)
        assert len(lane.subtasks) == 3
        task.cancel()

    async def test_a_plan_too_large_with_it_goes_without(self, cache):
        router = router_of(rules_of({"side": "auto"}, **STALE), cache=cache)
        large = {"text": "x" * 900_000}
        (plan,) = (await handled(router, asked(9, id="probe", task="intent", inputs=large))).plans
        entry = answer_entry(
            Result(id="p", status="ok", output="y" * 200_000, rules=plan.rules, privacy=Verdict())
        )
        assert entry is not None
        assert plan.cache is not None
        await cache.put([(plan.cache, stamped(entry, EARLIER))], 600.0)
        router._shelf.flights.abandon(plan.cache)  # type: ignore[union-attr]
        (plan,) = (await handled(router, asked(1, id="r1", task="intent", inputs=large))).plans
        assert (plan.answer, plan.stand_in) == (None, None)
        assert plan.steps
