"""What closed joins leave to the cache and give back to the budget."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.codec import encode
from schemas.messages import Attempt, Decision, Merge, RequestInfo, Result, Verdict
from schemas.rules_structs import BudgetRule
from streams import metrics
from streams.aggregator import errands as module
from streams.aggregator.errands import Errands
from streams.budget import Begin, MemoryBudget, Reservation
from streams.cache import NOTHING, MemoryCache, answer_of, step_of
from streams.stores import StoreUnavailable
from tests.helpers.aggregation import CLOUD, LOCAL, FakeClock, Host, World, high, partial, plan, step

KEY, STEP = "a:1", "s:1"
PAID = Attempt(side="cloud", triggers=("weak", "failed", "silent"), capability="nlp/intent", max_cost=0.5)
PAID_FIRST = msgspec.structs.replace(PAID, triggers=("first",))
OTHER = RequestInfo(id="other", accepted=0, deadline=1)


class Ledger:
    """A budget that notes what is released."""

    def __init__(self) -> None:
        self.released: list[str] = []

    async def release(self, subtasks, now):
        self.released += subtasks


class Kept:
    """An aggregator with a cache and a ledger around it."""

    def __init__(self) -> None:
        self.world = World()
        self.cache = MemoryCache(lambda: 0.0)
        self.ledger = Ledger()
        self.errands = Errands(self.world.clock, self.cache, self.ledger, keep_s=300)
        self.host = Host(self.world, errands=self.errands)

    async def entries(self, *events) -> list[bytes | None]:
        await self.after(*events)
        return await self.cache.get([KEY, STEP])

    async def after(self, *events) -> Kept:
        for event in events:
            self.world.append(event)
        await self.host.settled()
        return self


@pytest.fixture
async def kept():
    found = Kept()
    yield found
    await found.host.aggregator.close()


def shared(name: str = "r", *attempts: Attempt, **fields):
    return plan(name, step("s", *attempts, cache=STEP), cache=KEY, **fields)


async def test_an_exact_answer_and_its_step_are_kept(kept):
    asked = shared(decisions=(Decision(step="s", rule="score"),))
    whole, part = await kept.entries(asked, partial(asked, cost=0.5))
    found = answer_of(whole, OTHER, "v1")
    assert (found.id, found.output, found.cost, found.cached) == ("other", "s/local/0", 0, True)
    assert step_of(part, "other/s/local/0", 5).output == "s/local/0"


async def test_without_keys_nothing_is_kept(kept):
    asked = plan()
    await kept.after(asked, partial(asked))
    assert len(kept.cache) == 0


@pytest.mark.parametrize(
    "fields",
    [{"confidence": 0.1, "cached": False}, {"error": True}],
)
async def test_a_weak_or_failed_answer_is_not_but_its_followers_are_told(kept, fields):
    asked = shared("r", LOCAL)
    assert await kept.entries(asked, partial(asked, **fields)) == [NOTHING, None]


async def test_a_request_that_cannot_be_read_further_tells_its_followers(kept):
    asked = shared()
    await kept.after(asked)
    kept.world.append(b"\xc1", key="r")
    assert await kept.entries() == [NOTHING, None]


@pytest.mark.parametrize(
    "verdict", [Verdict(level="high"), Verdict(level="high", reasons=("email",), masked=True)]
)
async def test_nothing_sensitive_is_kept(kept, verdict):
    asked = shared("r", LOCAL, privacy=verdict)
    assert await kept.entries(asked, partial(asked)) == [NOTHING, None]


async def test_a_good_step_of_a_failed_request_is_kept(kept):
    asked = plan(
        "r", step("s", LOCAL, cache=STEP), step("t", LOCAL), cache=KEY, merge=Merge(strategy="collect")
    )
    whole, part = await kept.entries(asked, partial(asked, "s"), partial(asked, "t", error=True))
    assert whole == NOTHING
    assert part is not None


async def test_what_came_from_the_cache_does_not_live_on(kept):
    asked = shared()
    assert await kept.entries(asked, partial(asked, cached=True)) == [None, None]
    again = msgspec.structs.replace(shared("q"), steps=(), answer=Result(id="q", status="ok", cached=True))
    assert await kept.entries(again) == [None, None]


async def test_the_answer_is_out_before_anything_is_kept(kept):
    order: list[str] = []
    settle, put = kept.host.lane.settle, kept.cache.put

    async def slow(entries, ttl_s):
        order.append("kept")
        await put(entries, ttl_s)

    kept.cache.put = slow
    kept.host.lane.settle = lambda *given: (order.append("settled"), settle(*given))
    asked = shared()
    await kept.after(asked, partial(asked))
    assert order == ["settled", "kept"]


async def test_with_the_store_away_answers_go_on(kept):
    async def away(*given):
        raise StoreUnavailable("away")

    kept.cache.put = kept.ledger.release = away
    before = metrics.ERRANDS_DROPPED.labels("cache", "away")._value.get()
    for number in range(3):
        asked = shared(str(number), LOCAL, PAID)
        await kept.after(asked, partial(asked))
    assert len(kept.world.answers()) == 3
    assert metrics.ERRANDS_DROPPED.labels("cache", "away")._value.get() == before + 6


async def test_a_full_queue_drops_and_counts(monkeypatch):
    monkeypatch.setattr(module, "MAX_ENTRIES", 2)
    monkeypatch.setattr(module, "MAX_RELEASES", 1)
    cache, ledger = MemoryCache(lambda: 0.0), Ledger()
    errands = Errands(FakeClock(), cache, ledger, keep_s=60)
    before = metrics.ERRANDS_DROPPED.labels("cache", "full")._value.get()
    errands.keep([(str(number), b"x") for number in range(5)])
    errands.release(["a", "b"])
    await errands.close()
    assert len(cache) == 2
    assert ledger.released == ["a"]
    assert metrics.ERRANDS_DROPPED.labels("cache", "full")._value.get() == before + 3


async def test_closing_finishes_what_is_left_and_waits_for_no_store_that_hangs(monkeypatch):
    monkeypatch.setattr(module, "CLOSE_S", 0.05)
    cache = MemoryCache(lambda: 0.0)
    errands = Errands(FakeClock(), cache, keep_s=60)
    errands.keep([(str(number), b"x") for number in range(1_000)])
    await errands.close()
    assert len(cache) == 1_000

    async def hang(*given):
        await asyncio.sleep(60)

    cache.put = hang
    errands.keep([("k", b"x")])
    async with asyncio.timeout(5):
        await errands.close()


async def test_with_nothing_to_keep_it_for_nothing_is_kept():
    cache = MemoryCache(lambda: 0.0)
    errands = Errands(FakeClock(), cache, keep_s=0)
    errands.keep([("k", b"x")])
    errands.release(["a"])
    await errands.close()
    assert len(cache) == 0


@pytest.mark.parametrize(
    ("given", "released"),
    [
        ((partial("r"),), ["r/s/cloud/1"]),
        ((partial("r", confidence=0.1), partial("r", "s", "cloud", 1)), []),
        ((partial("r", confidence=0.1), partial("r", "s", "cloud", 1, error=True)), ["r/s/cloud/1"]),
        ((), ["r/s/cloud/1"]),
    ],
)
async def test_what_was_set_aside_and_not_used_is_given_back_at_the_close(kept, given, released):
    await kept.after(plan("r", step("s", LOCAL, PAID)), *given)
    await kept.host.pass_time(11_000)
    assert len(kept.world.answers()) == 1
    assert kept.ledger.released == released


async def test_a_cached_answer_gives_back_all(kept):
    asked = plan("r", step("s", PAID_FIRST, threshold=None))
    await kept.after(asked, partial(asked, side="cloud", cached=True))
    assert kept.ledger.released == ["r/s/cloud/0"]


async def test_plans_that_are_dropped_give_back_what_the_first_does_not_hold(kept):
    first = plan("r", step("s", LOCAL, PAID))
    second = plan("r", step("s", PAID_FIRST))
    await kept.after(first, partial(first, confidence=0.5), second)
    assert kept.ledger.released == ["r/s/cloud/0"]
    await kept.after(partial(first, side="cloud", attempt=1))
    assert kept.ledger.released == ["r/s/cloud/0"]
    await kept.after(second)
    assert kept.ledger.released == ["r/s/cloud/0"] * 2


async def test_a_plan_that_is_replaced_gives_back_what_the_new_one_does_not_hold(kept):
    await kept.after(plan("r", step("s", PAID_FIRST)), plan("r", step("s", LOCAL, PAID), rules="v2"))
    assert kept.ledger.released == ["r/s/cloud/0"]


async def test_free_attempts_are_not_given_back(kept):
    asked = plan("r", step("s", LOCAL, CLOUD))
    await kept.after(asked, partial(asked))
    assert kept.ledger.released == []


@given(
    level=st.sampled_from(["normal", "high"]),
    confidence=st.none() | st.floats(0, 1),
    error=st.sampled_from([None, True]),
    cached=st.booleans(),
    second=st.booleans(),
)
def test_only_what_is_exact_and_not_sensitive_gives_an_entry(level, confidence, error, cached, second):
    async def run() -> None:
        kept = Kept()
        steps = [step("s", LOCAL, cache=STEP), *([step("t", LOCAL)] if second else [])]
        asked = plan("r", *steps, cache=KEY)
        asked = high(asked) if level == "high" else asked
        await kept.after(asked, partial(asked, confidence=confidence, error=error, cached=cached))
        await kept.host.pass_time(11_000)
        whole, part = await kept.cache.get([KEY, STEP])
        exact = level == "normal" and error is None and not cached
        exact = exact and (confidence is None or confidence >= 0.9)
        assert (part is not None) == exact
        assert (whole not in (None, NOTHING)) == (exact and not second)
        (found,) = kept.world.answers()
        assert encode(found)
        await kept.host.aggregator.close()

    asyncio.run(run())


async def test_with_a_real_budget_nothing_stays_reserved():
    world = World()
    now = world.clock.time
    budget = MemoryBudget(BudgetRule(per_day=1.0), {})
    errands = Errands(world.clock, budget=budget)
    host = Host(world, errands=errands)
    asked = plan("r", step("s", LOCAL, PAID), step("t", PAID_FIRST))
    wanted = [Reservation(subtask, None, 0.5, now + 70_000) for subtask in ("r/s/cloud/1", "r/t/cloud/0")]
    assert await budget.reserve(wanted, now) == [True, True]
    assert await budget.begin([Begin("r/t/cloud/0", "n", None, 0.5, now + 70_000)], now) == [True]
    for event in (asked, partial(asked)):
        world.append(event)
    await host.settled()
    assert (await budget.spend(now)).total.reserved == 1.0
    await host.pass_time(11_000)
    assert world.answers()[0].missing == ("t",)
    total = (await budget.spend(world.clock.time)).total
    assert total.reserved == 0.5, "what has begun may still be charged"
    again = [Begin("r/s/cloud/1", "m", None, 0.5, now + 70_000)]
    assert await budget.begin(again, world.clock.time) == [False]
    await host.aggregator.close()
