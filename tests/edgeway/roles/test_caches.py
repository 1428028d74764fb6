"""One cache a process, where both who fill it and who read it can reach it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from edgeway.errors import UsageError
from edgeway.roles.aggregator import add_aggregator
from edgeway.roles.caches import cache_for
from edgeway.roles.process import Process
from schemas.rules import parse_rules
from streams.aggregator import Aggregator
from streams.cache import MemoryCache, RedisCache
from streams.settings import Settings

RULES = parse_rules(b"{}")
ALONE = Settings(kafka="127.0.0.1:1")
SHARED = dataclasses.replace(ALONE, redis="redis://127.0.0.1:1")


@pytest.mark.parametrize(
    ("name", "settings", "kind"),
    [
        ("up", ALONE, MemoryCache),
        ("up", SHARED, RedisCache),
        ("router", SHARED, RedisCache),
        ("router", ALONE, type(None)),
        ("aggregator", ALONE, type(None)),
    ],
)
async def test_where_it_lives(name: str, settings: Settings, kind: type) -> None:
    process = Process.create(name, settings, RULES)
    try:
        found = cache_for(process)
        assert type(found) is kind
        assert cache_for(process) is found
    finally:
        await process.stop()


async def test_it_is_closed_once_and_last() -> None:
    process = Process.create("up", ALONE, RULES)
    order: list[str] = []
    cache: Any = cache_for(process)
    assert cache_for(process) is cache

    async def role() -> None:
        order.append("role")

    async def close() -> None:
        order.append("cache")

    cache.close = close
    process.after.append(role)
    for step in process.before:
        await step()
    await process.stop()
    assert order == ["role", "cache"]


async def test_the_aggregator_follows_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Aggregator] = []
    monkeypatch.setattr("streams.metrics.count_from", lambda *about: None)
    monkeypatch.setattr(
        "edgeway.roles.aggregator.Aggregator", lambda *a, **k: made.append(Aggregator(*a, **k)) or made[0]
    )
    process = Process.create(
        "up", ALONE, parse_rules(b'{"tasks": {}, "reply_topics": ["results.a"], "cache_s": 0}')
    )
    try:
        add_aggregator(process)
        (found,) = made
        assert ("results.a" in found.replies, found._errands.keeps) == (True, False)
        prepare = process.on_rules[-1]
        adopt = prepare(parse_rules(b'{"tasks": {}, "reply_topics": ["results.b"], "cache_s": 5}'))
        assert "results.a" in found.replies, "nothing is adopted before all have agreed"
        adopt()
        assert ("results.a" in found.replies, "results.b" in found.replies) == (False, True)
        assert (found._errands.keeps, found._errands.keep_s) == (True, 5)
        with pytest.raises(UsageError, match="nonsense"):
            prepare(parse_rules(b'{"tasks": {}, "privacy": {"detectors": ["nonsense"]}}'))
    finally:
        await process.stop()
