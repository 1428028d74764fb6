"""Equal requests: executed once, whoever asks and however many at a time, and never across a line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.caller import Answer, Caller, new_id
from tests.helpers.kafka import serve as serve_kafka
from tests.helpers.redis import serve as serve_redis
from tests.helpers.roles import fetch
from tests.helpers.spine import PARTITIONS, Spine

pytestmark = pytest.mark.integration
PAGES = count(1)

APP = """
import json
import time
from pathlib import Path

from workers.backends.function import capability

RUNS = Path(__file__).with_name("runs.jsonl")


def ran(name, text):
    with RUNS.open("a", encoding="utf-8") as runs:
        runs.write(json.dumps([name, text]) + "\\n")


@capability("local/echo/text", cacheable=True, calibrated=True)
def echo(text="", wait_ms=0, sure=0.97):
    ran("echo", text)
    time.sleep(wait_ms / 1000)
    return {"text": text}, sure


@capability("local/echo/clean", cacheable=True)
def clean(text=""):
    ran("clean", text)
    return text.strip()


@capability("local/echo/count")
def count(text=""):
    ran("count", text)
    return len(text)
"""
RULES = {
    "builtin": False,
    "cache_s": 60,
    "privacy": {"detectors": ["formats"]},
    "apps": ["app.py"],
    "tasks": {
        "echo": {"capability": "echo/text", "side": "local", "local_threshold": 0.5},
        "count": {"capability": "echo/count", "side": "local"},
        "cleaned": {
            "steps": [
                {
                    "name": "clean",
                    "capability": "echo/clean",
                    "side": "local",
                    "inputs": {"text": "inputs.text"},
                },
                {
                    "name": "count",
                    "capability": "echo/count",
                    "side": "local",
                    "after": ["clean"],
                    "inputs": {"text": "steps.clean"},
                },
            ]
        },
        "clean": {
            "steps": [
                {
                    "name": "only",
                    "capability": "echo/clean",
                    "side": "local",
                    "inputs": {"text": "inputs.text"},
                }
            ]
        },
    },
}


class Echo(Spine):
    """An Edgeway whose app notes what it runs."""

    def runs(self, text: str) -> list[str]:
        """The capabilities that ran for `text`."""
        try:
            lines = (self.folder / "runs.jsonl").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
        return [name for name, of in map(json.loads, lines) if of == text]

    def metric(self, kind: str, outcome: str) -> float:
        """What `edgeway_cache_total` stands at."""
        wanted = f'edgeway_cache_total{{kind="{kind}",outcome="{outcome}"}} '
        lines = fetch(self.roles[0].port, "/metrics")[1].splitlines()
        return sum(float(line.removeprefix(wanted)) for line in lines if line.startswith(wanted))


@pytest.fixture(scope="module", params=["memory", "redis"])
def echo(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Echo]:
    """All roles in one process on a Kafka of their own, with and without Redis."""
    folder = tmp_path_factory.mktemp("cache")
    (folder / "app.py").write_text(APP, encoding="utf-8")
    (folder / "rules.json").write_text(json.dumps(RULES), encoding="utf-8")
    clusters = serve_kafka("embedded")
    servers = serve_redis("wheel", folder) if request.param == "redis" else iter((None,))
    made = Echo(next(clusters), folder, folder / "rules.json", next(servers))
    try:
        made.apply()
        made.start("up", "--partitions", str(PARTITIONS)).wait_ready()
        yield made
        made.stop()
    finally:
        for role in made.roles:
            role.kill()
        next(servers, None)
        next(clusters, None)


@pytest.fixture
async def caller(echo: Echo) -> AsyncIterator[Caller]:
    async with Caller(echo.kafka) as found:
        yield found


def words() -> str:
    """A text that nobody asked about so far, and in which no detector sees anything."""
    return f"is it on page {next(PAGES)}"


def params() -> dict[str, Any]:
    return {"page": next(PAGES)}


async def at_once(caller: Caller, request: dict[str, Any], many: int) -> list[Answer]:
    requests = [{**request, "id": new_id()} for _ in range(many)]
    sends = [
        caller.send(json.dumps(one).encode(), partition=number % PARTITIONS)
        for number, one in enumerate(requests)
    ]
    await asyncio.gather(*sends)
    return [await caller.answer(one["id"]) for one in requests]


async def kept(caller: Caller, request: dict[str, Any]) -> Answer:
    """The first cached answer: it is put there after the answer it comes from is out."""
    async with asyncio.timeout(10):
        while True:
            answer = await caller.ask(request)
            if answer.body.get("cached"):
                return answer


async def test_equal_requests_at_once_share_one_execution(echo: Echo, caller: Caller) -> None:
    text, before = words(), echo.metric("answer", "shared")
    request = {"task": "echo", "inputs": {"text": text, "wait_ms": 300}}
    answers = await at_once(caller, request, 12)
    assert [(answer.status, answer.body["output"]) for answer in answers] == [("ok", {"text": text})] * 12
    assert echo.runs(text) == ["echo"]
    assert sum(bool(answer.body.get("cached")) for answer in answers) == 11
    assert echo.metric("answer", "shared") - before >= 6


async def test_an_equal_request_later_gets_the_kept_answer(echo: Echo, caller: Caller) -> None:
    text, before = words(), echo.metric("answer", "hit")
    first = await caller.ask({"task": "echo", "inputs": {"text": text, "sure": 0.9}})
    runs = echo.runs(text)
    again = await kept(caller, {"task": "echo", "inputs": {"sure": 0.9, "text": text}, "max_cost": 0})
    assert not first.body.get("cached")
    assert (again.body["output"], again.body["confidence"]) == (first.body["output"], 0.9)
    assert (again.body["sides"], again.body["models"]) == (first.body["sides"], first.body["models"])
    assert again.body.get("cost", 0) == 0
    assert again.body["rules"] == first.body["rules"]
    assert len(runs) == 1
    assert echo.metric("answer", "hit") > before


@pytest.mark.parametrize(
    "other",
    [{"tenant": "b"}, {"tenant": None}, {"params": {"p": 1}}, {"privacy": "high"}, {"inputs": {"text": "x"}}],
)
async def test_a_request_that_differs_is_executed(echo: Echo, caller: Caller, other: dict[str, Any]) -> None:
    request = {"task": "clean", "inputs": {"text": words()}, "tenant": "a", "params": params()}
    await kept(caller, request)
    different = {**request, **other}
    before = sum(len(echo.runs(text)) for text in (request["inputs"]["text"], "x"))
    answer = await caller.ask({name: value for name, value in different.items() if value is not None})
    assert answer.status == "ok"
    assert not answer.body.get("cached")
    assert sum(len(echo.runs(text)) for text in (request["inputs"]["text"], "x")) == before + 1


@pytest.mark.parametrize(
    "more",
    [
        {"privacy": "high"},
        {"inputs": {"text": "write to ann.lee@example.org, IBAN DE89 3704 0044 0532 0130 00"}},
    ],
)
async def test_nothing_sensitive_is_ever_kept(echo: Echo, caller: Caller, more: dict[str, Any]) -> None:
    request = {"task": "echo", "inputs": {"text": words()}, **more}
    text = str(request["inputs"]["text"])
    runs = len(echo.runs(text))
    for _ in range(4):
        answer = await caller.ask(request)
        assert not answer.body.get("cached")
        assert answer.body["privacy"]["level"] == "high"
    assert len(echo.runs(text)) - runs == 4


async def test_what_no_card_and_no_rule_allows_is_not_kept(echo: Echo, caller: Caller) -> None:
    text = words()
    for _ in range(3):
        assert not (await caller.ask({"task": "count", "inputs": {"text": text}})).body.get("cached")
    assert echo.runs(text) == ["count"] * 3


async def test_a_weak_answer_is_shared_with_nobody(echo: Echo, caller: Caller) -> None:
    text = words()
    answers = await at_once(
        caller, {"task": "echo", "inputs": {"text": text, "sure": 0.2, "wait_ms": 200}}, 4
    )
    assert echo.runs(text) == ["echo"] * 4
    assert all(answer.status == "ok" and answer.body["approximate"] for answer in answers)
    assert all("low confidence" in answer.body["warnings"][1] for answer in answers)


async def test_a_step_is_shared_by_requests_whose_answers_are_not(echo: Echo, caller: Caller) -> None:
    text, before = f" {words()} ", echo.metric("step", "hit")
    request = {"task": "cleaned", "inputs": {"text": text}}
    answers = [await caller.ask(request)]
    async with asyncio.timeout(10):
        while echo.metric("step", "hit") == before:
            answers.append(await caller.ask(request))
    ran = len(echo.runs(text))
    for answer in answers:
        assert answer.body["output"] == {"clean": text.strip(), "count": len(text.strip())}
        assert answer.body["sides"] == {"clean": "local", "count": "local"}
        assert not answer.body.get("cached")
    assert ran == len(answers) - 1
    assert len(echo.runs(text.strip())) == len(answers)
    assert answers[-1].body["timings"]["clean"].get("service_ms", 0) == 0


async def test_a_repeated_id_has_one_answer(echo: Echo, caller: Caller) -> None:
    text = words()
    request = {"id": new_id(), "task": "echo", "inputs": {"text": text, "wait_ms": 200}}
    for number in range(4):
        await caller.send(json.dumps(request).encode(), partition=number % PARTITIONS)
    first = await caller.answer(str(request["id"]))
    await caller.send(json.dumps(request).encode())
    await asyncio.sleep(1)
    assert caller.all_of(str(request["id"])) == [first]
    assert echo.runs(text) == ["echo"]


@pytest.mark.parametrize("echo", ["redis"], indirect=True)
async def test_without_redis_everything_is_executed_and_nothing_lost(echo: Echo, caller: Caller) -> None:
    assert echo.redis is not None
    text = words()
    request = {"task": "echo", "inputs": {"text": text}}
    await kept(caller, request)
    runs = len(echo.runs(text))
    echo.redis.kill()
    try:
        answers = await at_once(caller, request, 6)
        assert [answer.status for answer in answers] == ["ok"] * 6
        assert not any(answer.body.get("cached") for answer in answers)
        assert len(echo.runs(text)) == runs + 6
        assert echo.metric("answer", "unavailable") > 0
    finally:
        echo.redis.start()
    await kept(caller, request)


async def test_followers_outlive_their_router(tmp_path: Path) -> None:
    """Each role a process, over Redis: who waited in a router that was killed is answered by the next."""
    (tmp_path / "app.py").write_text(APP, encoding="utf-8")
    (tmp_path / "rules.json").write_text(json.dumps(RULES), encoding="utf-8")
    clusters, servers = serve_kafka("embedded"), serve_redis("wheel", tmp_path)
    pieces = Echo(next(clusters), tmp_path, tmp_path / "rules.json", next(servers))
    try:
        pieces.apply()
        router = pieces.start("router")
        for words_ in (("aggregator",), ("worker", "--side", "local")):
            pieces.start(*words_)
        for role in pieces.roles:
            role.wait_ready()
        async with Caller(pieces.kafka) as caller:
            text = words()
            request = {"task": "echo", "inputs": {"text": text, "wait_ms": 2_000}}
            asked = asyncio.create_task(at_once(caller, request, 9))
            async with asyncio.timeout(20):
                while not pieces.runs(text):
                    await asyncio.sleep(0.05)
            router.kill()
            await asyncio.to_thread(pieces.start("router").wait_ready)
            answers = await asked
        assert [answer.body.get("output") for answer in answers] == [{"text": text}] * 9
        assert sum(bool(answer.body.get("cached")) for answer in answers) >= 7
        assert len(pieces.runs(text)) <= 2, "the next router may lead once more before the answer is there"
        pieces.stop()
    finally:
        for role in pieces.roles:
            role.kill()
        next(servers, None)
        next(clusters, None)
