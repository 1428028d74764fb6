"""What a caller gets where the best answer is not to be had, and that cancelled work is not begun."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.caller import Answer, Caller, new_id
from tests.helpers.roles import Role, fetch

pytestmark = pytest.mark.integration

INACCURATE = "possibly inaccurate (可能不准确)"
APP = """
import time
from pathlib import Path

from workers.backends.function import capability

HERE = Path(__file__).parent


def ran(name, text):
    with (HERE / "runs").open("a", encoding="utf-8") as runs:
        runs.write(f"{name} {text}\\n")


def guesser(name):
    @capability(f"local/guess/{name}", calibrated=True)
    def guess(text=""):
        return {"label": "cat"}, 0.4

    return guess


guess_hung, guess_away, guess_dear = map(guesser, ("hung", "away", "dear"))


@capability("cloud/guess/hung")
def hung(text=""):
    time.sleep(8)
    return {"label": "dog"}, 0.9


@capability("cloud/guess/dear", cost=5.0)
def dear(text=""):
    return {"label": "dog"}, 0.9


@capability("cloud/news/read", cacheable=True)
def read(text=""):
    if (HERE / "broken").exists():
        raise OSError("the line is dead")
    return {"news": text}


@capability("cloud/news/buy", cost=0.75, cacheable=True)
def buy(text=""):
    return {"news": text}


@capability("local/slow/step", max_batch=1)
def slow(text=""):
    ran("slow", text)
    time.sleep(1.0)
    return text
"""
GUESS = {"local_threshold": 0.9, "slow_ms": 300, "deadline_ms": 4000}
NEWS = {"side": "cloud", "deadline_ms": 4000}
RULES = {
    "builtin": False,
    "cache_s": 1,
    "stale_s": 600,
    "privacy": {"detectors": ["formats"]},
    "budget": {"per_day": 1.0},
    "apps": ["app.py"],
    "tasks": {
        "hung": {"capability": "guess/hung", **GUESS},
        "away": {"capability": "guess/away", **GUESS},
        "dear": {"capability": "guess/dear", **GUESS},
        "news": {"capability": "news/read", **NEWS},
        "bought": {"capability": "news/buy", **NEWS},
        "slow": {"capability": "slow/step", "side": "local", "deadline_ms": 20000},
    },
}


class Running:
    def __init__(self, kafka: str, folder: Path) -> None:
        self.kafka, self.folder = kafka, folder
        (folder / "app.py").write_text(APP, encoding="utf-8")
        rules = folder / "rules.json"
        rules.write_text(json.dumps(RULES), encoding="utf-8")
        about = ("--kafka", kafka, "--rules", str(rules), "--partitions", "1")
        self.up = Role(folder, "up", *about, "--log-format", "text")

    def runs(self) -> list[str]:
        runs = self.folder / "runs"
        return runs.read_text(encoding="utf-8").splitlines() if runs.exists() else []

    def counted(self, name: str, **labels: str) -> float:
        found = 0.0
        for line in fetch(self.up.port, "/metrics")[1].splitlines():
            if line.startswith(f"{name}{{") and all(f'{k}="{v}"' in line for k, v in labels.items()):
                found += float(line.rpartition(" ")[2])
        return found


@pytest.fixture(scope="module")
def running(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = Running(bootstrap, tmp_path_factory.mktemp("degraded"))
    running.up.start()
    try:
        running.up.wait_ready()
        yield running
    finally:
        running.up.kill()


def local_guess(answer: Answer) -> dict[str, Any]:
    body = answer.body
    assert (body["status"], body["output"]) == ("ok", {"label": "cat"}), body
    assert body["approximate"] is True
    assert body["warnings"][0] == INACCURATE
    assert body["warnings"].count(INACCURATE) == 1
    return body


async def test_the_local_answer_where_the_cloud_hangs_is_away_dear_or_closed(running: Running) -> None:
    async with Caller(running.kafka) as caller:
        hung, away, dear, refused = await asyncio.gather(
            caller.ask({"task": "hung", "text": "a"}),
            caller.ask({"task": "away", "text": "a"}),
            caller.ask({"task": "dear", "text": "a"}),
            caller.ask({"task": "hung", "text": "mail jane.roe@quist-post.org"}),
        )
    assert local_guess(hung)["degraded"] == ["cloud_slow", "low_confidence"]
    assert local_guess(away)["degraded"] == ["cloud_away", "low_confidence"]
    assert local_guess(dear)["degraded"] == ["over_budget", "low_confidence"]
    assert local_guess(refused)["degraded"] == ["cloud_refused", "low_confidence"]
    assert refused.body["privacy"]["level"] == "high"
    assert running.counted("edgeway_degraded_total", kind="low_confidence") == 4
    assert running.counted("edgeway_degraded_total", kind="cloud_slow") == 1


def aged(answer: Answer, because: str) -> None:
    body = answer.body
    assert body["status"] == "ok", body
    assert (body["cached"], body["approximate"]) == (True, True)
    assert body["degraded"] == [because, "stale_cache"]
    assert 1_000 < body["age_ms"] < 60_000
    assert body["warnings"] == [INACCURATE, f"cached answer, {body['age_ms'] // 1000} s old"]


async def test_an_older_answer_with_its_age_else_an_error_that_names_the_reason(running: Running) -> None:
    news, bought = {"task": "news", "text": "today"}, {"task": "bought", "text": "today"}
    async with Caller(running.kafka) as caller:
        first, paid = await asyncio.gather(caller.ask(news), caller.ask(bought))
        assert (first.body["output"], first.body.get("degraded")) == ({"news": "today"}, None)
        assert paid.body["cost"] == 0.75
        await asyncio.sleep(1.6)  # beyond cache_s
        (running.folder / "broken").touch()
        again, unpaid, never, private = await asyncio.gather(
            caller.ask(news),
            caller.ask(bought),
            caller.ask({"task": "news", "text": "tomorrow"}),
            caller.ask(news | {"privacy": "high"}),
        )
        aged(again, "cloud_failed")
        assert again.body["output"] == {"news": "today"}
        aged(unpaid, "over_budget")
        assert not unpaid.body.get("cost")
        assert (never.status, never.code) == ("error", "backend_error")
        assert (private.status, private.code) == ("error", "no_placement")
        assert "privacy" in private.message
        (running.folder / "broken").unlink()
        healed = await caller.ask(news)
        assert (healed.body.get("cached"), healed.body.get("degraded")) == (None, None)
    assert running.counted("edgeway_degraded_total", kind="stale_cache") == 2


async def test_what_is_cancelled_while_it_waits_is_never_executed(running: Running) -> None:
    names = [new_id(name) for name in ("first", "kept", "unwanted", "before")]
    asked = [{"id": name, "task": "slow", "text": name} for name in names]
    async with Caller(running.kafka) as caller:

        async def cancel(name: str) -> None:
            value = json.dumps({"type": "cancel", "v": 1, "id": name}).encode()
            await caller.send(value, topic="cancellations", key=name.encode())

        await cancel(names[3])
        for request in asked[:3]:
            await caller.send(json.dumps(request).encode())
        until = time.monotonic() + 10
        while not running.runs() and time.monotonic() < until:
            await asyncio.sleep(0.02)
        await cancel(names[2])
        await caller.send(json.dumps(asked[3]).encode())
        first, kept, unwanted, before = [await caller.answer(name) for name in names]
        assert (first.body["output"], kept.body["output"]) == (names[0], names[1])
        assert (unwanted.code, before.code) == ("cancelled", "cancelled")
        await asyncio.sleep(0.5)
        assert [len(caller.all_of(name)) for name in names] == [1, 1, 1, 1]
    assert running.runs() == [f"slow {names[0]}", f"slow {names[1]}"]
    assert running.counted("edgeway_cancelled_total", stage="router") == 1
    assert running.counted("edgeway_cancelled_total", stage="queue") == 1
