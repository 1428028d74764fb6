"""`edgeway budget`: the balances of a real Redis, and a ledger opened where there is none."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from edgeway.cli import main
from schemas.rules import parse_rules
from streams.budget import Begin, Paid, RedisBudget, Reservation
from streams.budget.redis import KEYS
from streams.stores import RedisLink
from tests.helpers.redis import RedisServer, free_port

RULES = (
    b'{"budget": {"per_day": 2, "per_tenant": 1, "currency": "EUR"}, "tenants": {"acme": {"per_day": 0.5}}}'
)


@pytest.fixture
def flags(redis_server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.delenv("EDGEWAY_REDIS", raising=False)
    (tmp_path / "rules.json").write_bytes(RULES)
    return ["--redis", redis_server.url, "--rules", str(tmp_path / "rules.json")]


async def _spent(url: str) -> None:
    """0.25 paid by acme, 0.125 reserved by nobody's tenant."""
    rules = parse_rules(RULES)
    budget = RedisBudget(RedisLink(url, timeout_s=5.0), rules.budget, rules.tenants)
    now = int(time.time() * 1000)
    soon = now + 60_000
    assert await budget.begin([Begin("a", "n", "acme", 0.3, soon)], now) == [True]
    await budget.settle([Paid("a", "n", 0.25)], now)
    assert await budget.reserve([Reservation("b", None, 0.125, soon)], now) == [True]
    await budget.close()


def _run(*words: str) -> int:
    return main(["budget", *words])


def test_show_tells_what_every_tenant_spent(
    redis_server: RedisServer, flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    import asyncio

    asyncio.run(_spent(redis_server.url))
    assert _run("show", *flags, "--json") == 0
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert said["currency"] == "EUR"
    assert said["all"] == {"limit": 2.0, "spent": 0.25, "reserved": 0.125, "left": 1.625}
    assert said["tenants"] == {
        "": {"limit": 1.0, "spent": 0.0, "reserved": 0.125, "left": 0.875},
        "acme": {"limit": 0.5, "spent": 0.25, "reserved": 0.0, "left": 0.25},
    }
    assert _run(*flags) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0][1:] == ["UTC,", "in", "EUR"]
    assert lines[1] == ["tenant", "limit", "spent", "reserved", "left"]
    assert lines[2] == ["all", "2.000000", "0.250000", "0.125000", "1.625000"]
    assert [line[0] for line in lines[3:]] == ["(none)", "acme"]


def test_a_missing_ledger_is_told_and_opened_by_open_alone(
    flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run("show", *flags) == 1
    assert "edgeway budget open" in capsys.readouterr().err
    assert _run("show", *flags) == 1, "looking opens nothing"
    assert _run("open", *flags) == 0
    assert "was opened" in capsys.readouterr().err
    assert _run("open", *flags) == 0
    assert "left as it is" in capsys.readouterr().err
    assert _run("show", *flags) == 0


def test_a_redis_that_is_away_and_one_that_is_not_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EDGEWAY_REDIS", raising=False)
    assert _run("--redis", f"redis://:hunter2@127.0.0.1:{free_port()}/0") == 1
    said = capsys.readouterr().err
    assert "away" in said
    assert "hunter2" not in said
    assert _run() == 2
    assert "--redis" in capsys.readouterr().err


def test_the_keys_share_a_slot_of_a_cluster() -> None:
    assert {key[key.index("{") : key.index("}")] for key in KEYS} == {"{budget"}
