"""What only a ledger on another machine can do: be away, be flushed, survive a kill."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from schemas.rules_structs import BudgetRule
from streams.budget import Begin, ClosedBudget, LedgerMissing, Paid, RedisBudget, Reservation
from streams.budget.ledger import WINDOW_MS
from streams.budget.redis import KEYS
from streams.stores import RedisLink, StoreUnavailable
from tests.helpers.redis import RedisServer, WheelServer, free_port

NOW = 20_000 * WINDOW_MS + 3_600_000
WISH = Reservation("r/s/cloud/0", None, 0.25, NOW + 90_000)
ASK = Begin("r/s/cloud/0", "n", None, 0.25, NOW + 90_000)
RULE = BudgetRule(per_day=1.0)


def budget_at(url: str, **more: bool) -> RedisBudget:
    return RedisBudget(RedisLink(url, timeout_s=5.0), RULE, **more)


@pytest.fixture
async def budget(redis_server: RedisServer) -> AsyncIterator[RedisBudget]:
    budget = budget_at(redis_server.url)
    yield budget
    await budget.close()


async def flush(url: str) -> None:
    link = RedisLink(url, timeout_s=5.0)
    await link.call("FLUSHALL")
    await link.close()


async def test_the_first_process_opens_a_ledger_and_says_so_the_next_one_finds_it(
    redis_server: RedisServer, budget: RedisBudget, caplog: pytest.LogCaptureFixture
) -> None:
    other = budget_at(redis_server.url)
    assert await budget.reserve([WISH], NOW) == [True]
    assert await other.begin([ASK], NOW) == [True]
    assert (await budget.spend(NOW)).total.reserved == 0.25
    told = [message for message in caplog.messages if "nothing spent" in message]
    assert len(told) == 1
    await other.close()


async def test_a_ledger_that_is_gone_keeps_the_cloud_closed_until_it_is_opened(
    redis_server: RedisServer, budget: RedisBudget, caplog: pytest.LogCaptureFixture
) -> None:
    await budget.reserve([WISH], NOW)
    await flush(redis_server.url)
    for _ in range(2):
        with pytest.raises(LedgerMissing, match="edgeway budget open"):
            await budget.reserve([WISH], NOW)
    with pytest.raises(LedgerMissing):
        await budget.begin([ASK], NOW)
    with pytest.raises(LedgerMissing):
        await budget.spend(NOW)
    assert len([record for record in caplog.records if record.levelno == logging.ERROR]) == 1
    operator = budget_at(redis_server.url, opens=False)
    assert await operator.open(NOW) is True
    assert await operator.open(NOW) is False
    await operator.close()
    assert await budget.reserve([WISH], NOW) == [True]
    assert any("another ledger" in message for message in caplog.messages)


async def test_a_restart_opens_one_too_and_a_process_that_requires_one_never_does(
    redis_server: RedisServer, budget: RedisBudget
) -> None:
    strict = budget_at(redis_server.url, opens=False)
    with pytest.raises(LedgerMissing):
        await strict.reserve([WISH], NOW)
    await budget.spend(NOW)
    assert await strict.reserve([WISH], NOW) == [True]
    await flush(redis_server.url)
    restarted = budget_at(redis_server.url)
    assert await restarted.reserve([WISH], NOW) == [True]
    assert await budget.reserve([WISH], NOW) == [True], "somebody has opened one"
    for each in (strict, restarted):
        await each.close()


async def test_with_an_append_only_file_a_kill_loses_nothing(tmp_path: Path) -> None:
    server = WheelServer(tmp_path, durable=True)
    server.start()
    try:
        budget = budget_at(server.url)
        await budget.reserve([WISH], NOW)
        await budget.begin([ASK], NOW)
        server.kill()
        with pytest.raises(StoreUnavailable) as away:
            await budget.settle([Paid("r/s/cloud/0", "n", 0.1)], NOW)
        assert not isinstance(away.value, LedgerMissing)
        server.start()
        assert (await budget.spend(NOW)).total == (1.0, 0.0, 0.25)
        await budget.settle([Paid("r/s/cloud/0", "n", 0.1)], NOW)
        assert (await budget.spend(NOW)).total == (1.0, 0.1, 0.0)
        await budget.close()
    finally:
        server.kill()


async def test_without_one_a_restarted_server_has_no_ledger(
    redis_server: RedisServer, budget: RedisBudget
) -> None:
    await budget.reserve([WISH], NOW)
    redis_server.kill()
    redis_server.start()
    with pytest.raises(LedgerMissing):
        await budget.reserve([WISH], NOW)


async def test_entries_expire_by_themselves_and_the_ledger_stays(
    redis_server: RedisServer, budget: RedisBudget
) -> None:
    await budget.reserve([WISH], NOW)
    link = RedisLink(redis_server.url, timeout_s=5.0)
    left = [await link.call("PTTL", key) for key in KEYS]
    assert left[0] == -1
    day_after = 2 * WINDOW_MS - 3_600_000
    assert all(day_after - 60_000 < each <= day_after for each in left[1:])
    await budget.spend(NOW + 90_000)
    assert [await link.call("EXISTS", key) for key in KEYS] == [1, 0, 0]
    later = NOW + 3 * WINDOW_MS
    assert (await budget.spend(later)).tenants == {}
    assert await link.call("HLEN", KEYS[0]) == 2, "the epoch and the day alone"
    await link.close()


async def test_a_server_that_is_away_is_unavailable_for_every_call() -> None:
    budget = RedisBudget(RedisLink(f"redis://127.0.0.1:{free_port()}/0"), RULE)
    for call in (
        lambda: budget.reserve([WISH], NOW),
        lambda: budget.begin([ASK], NOW),
        lambda: budget.settle([Paid("r/s/cloud/0", "n", 0.1)], NOW),
        lambda: budget.release(["r/s/cloud/0"], NOW),
        lambda: budget.spend(NOW),
    ):
        with pytest.raises(StoreUnavailable):
            await call()
    await budget.close()
    await budget.close()


async def test_a_closed_budget_refuses_everything() -> None:
    budget = ClosedBudget()
    budget.adopt(RULE, {})
    for call in (
        lambda: budget.reserve([WISH], NOW),
        lambda: budget.begin([ASK], NOW),
        lambda: budget.settle([Paid("r/s/cloud/0", "n", 0.1)], NOW),
        lambda: budget.release(["r/s/cloud/0"], NOW),
        lambda: budget.spend(NOW),
    ):
        with pytest.raises(StoreUnavailable, match="--redis"):
            await call()
    await budget.close()
