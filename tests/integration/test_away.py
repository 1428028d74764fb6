"""A service that dies and comes back behind a worker, a router and an aggregator: no request is spent on it
meanwhile, and traffic flows again soon.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.caller import Answer, Caller
from tests.helpers.faulty_server import Asked, Fault, FaultyServer, faulty
from tests.helpers.kafka import Kafka
from tests.helpers.roles import Role, command
from workers.backends.remote_reach import EVERY_S, SPREAD

pytestmark = pytest.mark.integration

DOWN_S = 6.0
"""Longer than a breaker stays open without knowing why."""
TRYING_S = EVERY_S * (1 + SPREAD) + 0.25 + 1.0
"""A look, the beat that tells of it, and a busy machine."""
ROW_S = 1.5
"""A dozen requests."""
APP = """
from workers.backends.openai import OpenAIBackend

chat = OpenAIBackend("cloud/nlp/say", url="{url}/v1", model="tiny", max_cost=0)
"""


def answer(asked: Asked) -> Any:
    if asked.path == "/v1/models":
        return {"data": []}
    return {"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with faulty(answer) as started:
        yield started


@pytest.fixture
def roles(own_kafka: Kafka, server: FaultyServer, tmp_path: Path) -> Iterator[list[Role]]:
    app, rules = tmp_path / "app.py", tmp_path / "rules.json"
    app.write_text(APP.format(url=server.url), encoding="utf-8")
    task = {"capability": "nlp/say", "side": "cloud", "deadline_ms": 4000}
    rules.write_text(json.dumps({"tasks": {"say": task}, "cache_s": 0}), encoding="utf-8")
    about = ("--kafka", own_kafka.bootstrap, "--rules", str(rules))
    done = command("topics", "apply", *about, "--partitions", "1", "--fix")
    assert done.returncode == 0, done.stdout + done.stderr
    commands = [("worker", "--side", "cloud", "--app", str(app)), ("router",), ("aggregator",)]
    started = [Role(tmp_path, *words, *about, "--log-format", "text").start() for words in commands]
    try:
        for role in started:
            role.wait_ready()
        yield started
    finally:
        for role in started:
            role.kill()


async def ask(caller: Caller) -> Answer:
    return await caller.ask({"task": "say", "text": "well?"})


async def until(caller: Caller, seen: Callable[[Answer], bool], within_s: float) -> None:
    """Ask, ten times a second, until an answer is as it is waited for."""
    end = time.monotonic() + within_s
    while not seen(last := await ask(caller)):
        assert time.monotonic() < end, last.body
        await asyncio.sleep(0.1)


def posts(server: FaultyServer) -> int:
    return sum(asked.method == "POST" for asked in server.calls)


def is_shut(answer: Answer) -> bool:
    return answer.code == "no_placement" and "breaker_away" in answer.message


async def test_it_dies_and_comes_back(own_kafka: Kafka, roles: list[Role], server: FaultyServer) -> None:
    async with Caller(own_kafka.bootstrap) as caller:
        await until(caller, lambda answer: answer.status == "ok", 10.0)
        assert [asked for asked in server.calls if asked.method == "GET"] == []
        server.fault = lambda _: Fault(503, body=b"{}")
        await until(caller, is_shut, 5.0)
        spent, end = posts(server), time.monotonic() + DOWN_S
        while time.monotonic() < end:
            assert is_shut(last := await ask(caller)), last.body
            await asyncio.sleep(0.1)
        assert posts(server) == spent, "a request was spent on a service that is known to be away"
        shown = command("capabilities", "show", "cloud/nlp/say", "--kafka", own_kafka.bootstrap)
        assert "breaker: away" in shown.stdout
        assert "its service is away" in shown.stdout
        server.fault = lambda _: None
        began = time.monotonic()
        await until(caller, lambda answer: answer.status == "ok", TRYING_S)
        in_a_row = 0
        while in_a_row < 12:
            in_a_row = in_a_row + 1 if (await ask(caller)).status == "ok" else 0
            assert time.monotonic() - began < TRYING_S + ROW_S + 1.0
            await asyncio.sleep(0.1)
