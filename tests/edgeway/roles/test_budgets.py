"""Which budget a process has, and that it follows the rules."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import REGISTRY

from edgeway.errors import UsageError
from edgeway.roles.budgets import budget_for, forgetting
from schemas.rules import parse_rules
from streams.budget import ClosedBudget, MemoryBudget, RedisBudget, Reservation
from streams.settings import Settings
from streams.stores import RedisLink, StoreUnavailable
from tests.helpers.redis import RedisServer, WheelServer, free_port

WITH = parse_rules(b'{"budget": {"per_day": 1}}')
MORE = parse_rules(b'{"budget": {"per_day": 2}}')
TENANT = parse_rules(b'{"budget": {}, "tenants": {"acme": {"per_day": 1}}}')
WITHOUT = parse_rules(b"{}")
WISH = Reservation("r/s/cloud/0", None, 1.5, 2_000)


class Fake:
    """As much of a process as a budget needs."""

    def __init__(self, name: str, rules: Any, **settings: Any) -> None:
        self.name, self.rules = name, rules
        self.settings = Settings(**settings)
        self.shared: dict[str, Any] = {}
        self.clock = SimpleNamespace(now=lambda: 1_000)
        self.before: list[Any] = []
        self.after: list[Any] = []
        self.on_rules: list[Callable[..., Any]] = []
        self.timers: list[Any] = []
        self.host = SimpleNamespace(every=lambda seconds, name, work: self.timers.append(work))

    async def stop(self) -> None:
        for step in self.after:
            await step()


def budget(process: Fake) -> Any:
    return budget_for(process)  # type: ignore[arg-type]


def test_rules_without_a_ceiling_have_none_and_a_later_one_needs_a_restart() -> None:
    process = Fake("router", WITHOUT)
    assert budget(process) is None
    (prepare,) = process.on_rules
    prepare(WITHOUT)()
    with pytest.raises(UsageError, match="restart"):
        prepare(WITH)


@pytest.mark.parametrize("rules", [WITH, TENANT])
def test_all_roles_of_one_process_share_one_in_memory(rules: Any) -> None:
    process = Fake("up", rules)
    assert isinstance(budget(process), MemoryBudget)
    assert budget(process) is budget(process)
    assert len(process.on_rules) == 1


async def test_a_role_alone_without_redis_pays_for_nothing_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    process = Fake("router", WITH)
    assert isinstance(budget(process), ClosedBudget)
    with pytest.raises(StoreUnavailable):
        await budget(process).reserve([WISH], 1_000)
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


async def test_new_rules_are_adopted() -> None:
    process = Fake("up", WITH)
    assert await budget(process).reserve([WISH], 1_000) == [False]
    process.on_rules[0](MORE)()
    assert await budget(process).reserve([WISH], 1_000) == [True]
    process.on_rules[0](WITHOUT)()
    assert (await budget(process).spend(1_000)).total.limit is None


async def test_on_redis_it_opens_the_ledger_before_any_record_warns_and_is_closed_last(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    process = Fake("worker", WITH, redis=redis_server.url)
    assert isinstance(budget(process), RedisBudget)
    process.after.append(lambda: budget(process).spend(1_000))
    for step in process.before:
        await step()
    assert any("appendonly yes" in message for message in caplog.messages)
    assert any("nothing spent" in message for message in caplog.messages)
    await process.timers[0]()
    await process.stop()


async def test_where_the_ledger_is_required_no_start_opens_one(redis_server: RedisServer) -> None:
    process = Fake("worker", WITH, redis=redis_server.url, ledger="require")
    found = budget(process)
    for step in process.before:
        await step()
    with pytest.raises(StoreUnavailable, match="edgeway budget open"):
        await found.reserve([WISH], 1_000)
    await process.stop()


async def test_a_redis_that_is_away_stops_no_start() -> None:
    process = Fake("worker", WITH, redis=f"redis://127.0.0.1:{free_port()}/0")
    budget(process)
    for step in process.before:
        await step()
    await process.timers[0]()
    await process.stop()


async def test_a_redis_that_keeps_everything_gets_no_warning_and_one_that_evicts_does(tmp_path: Path) -> None:
    server = WheelServer(tmp_path, durable=True)
    server.start()
    link = RedisLink(server.url, timeout_s=5.0)
    try:
        assert await forgetting(link) == []
        await link.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        (line,) = await forgetting(link)
        assert "allkeys-lru" in line
    finally:
        await link.close()
        server.kill()


async def test_the_metric_of_the_ledger_is_down_where_one_is_needed_and_does_not_answer() -> None:
    def shown() -> float | None:
        return REGISTRY.get_sample_value("edgeway_budget_store_up")

    budget(Fake("router", WITH))
    assert shown() == 0
    budget(Fake("up", WITH))
    assert shown() == 1
    lonely = Fake("router", WITH, redis=f"redis://127.0.0.1:{free_port()}/0")
    budget(lonely)
    assert shown() == 0
    budget(Fake("router", WITHOUT))
    assert shown() == 1
    await budget(lonely).close()
