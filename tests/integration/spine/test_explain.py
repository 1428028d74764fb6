"""What `explain` foretells of live roles is what their results say; what was asked can be tried again."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.caller import Caller, new_id
from tests.helpers.roles import command
from tests.helpers.spine import Spine
from tests.integration.spine.samples import SURE, decomposed, images

pytestmark = pytest.mark.integration

TRIES = 5


def requests() -> list[dict[str, Any]]:
    asked: list[dict[str, Any]] = [
        {"task": "intent", "text": SURE},
        {"task": "intent", "text": SURE, "privacy": "high"},
        {"task": "image_class", "inputs": {"pixels": images()[0]}},
        {"task": "financial_report", "inputs": decomposed("demo-finance-1")},
        {"task": "nowhere", "text": "x"},
        {"task": "unheard_of", "text": "x"},
    ]
    return [{"id": new_id("explained"), **one} for one in asked]


async def explained(spine: Spine, file: Path, *words: str) -> list[dict[str, Any]]:
    about = ("--rules", str(spine.rules), "--json")
    done = await asyncio.to_thread(command, "explain", str(file), *about, *words)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def settled(decisions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Decisions without what follows live figures, which change from one beat to the next."""
    return [
        {key: value for key, value in one.items() if key not in ("scores", "factors")} for one in decisions
    ]


async def test_the_decisions_of_a_result_are_those_that_explain_shows(
    spine: Spine, caller: Caller, tmp_path: Path
) -> None:
    for last in range(TRIES - 1, -1, -1):
        asked = requests()
        file = tmp_path / "asked.jsonl"
        file.write_text("\n".join(map(json.dumps, asked)), encoding="utf-8")
        answers = [await caller.ask(request) for request in asked]
        foretold = await explained(spine, file, "--kafka", spine.kafka)
        assert [one["id"] for one in foretold] == [request["id"] for request in asked]
        told = [settled(answer.body.get("decisions", [])) for answer in answers]
        if told == [settled(one["decisions"]) for one in foretold] or not last:
            break
        await asyncio.sleep(2.5)  # a breaker may have moved between the answer and the question
    for answer, one in zip(answers, foretold, strict=True):
        assert settled(one["decisions"]) == settled(answer.body.get("decisions", []))
        assert (one["rules"], one["registry"]) == (answer.body["rules"], "live")
        failure = answer.body.get("error") or {"code": None}
        assert (one["error"] or {"code": None})["code"] == failure["code"]
    assert [one["cloud_allowed"] for one in foretold][:2] == [True, False]


async def test_a_saved_registry_decides_as_the_live_one(spine: Spine, tmp_path: Path) -> None:
    cards, file = tmp_path / "cards.json", tmp_path / "asked.jsonl"
    file.write_text("\n".join(map(json.dumps, requests())), encoding="utf-8")
    live = await explained(spine, file, "--kafka", spine.kafka, "--save-registry", str(cards))
    given = await explained(spine, file, "--registry", str(cards))
    assert {one["registry"] for one in given} == {"given"}
    assert [one["steps"] for one in given] == [one["steps"] for one in live]
    assert [settled(one["decisions"]) for one in given] == [settled(one["decisions"]) for one in live]


async def test_what_the_topics_hold_can_be_tried_under_other_rules(
    spine: Spine, caller: Caller, tmp_path: Path
) -> None:
    asked = [{"id": new_id("recorded"), "task": "intent", "text": SURE} for _ in range(5)]
    answers = [await caller.ask(request) for request in asked]
    said = {"type": "feedback", "v": 1, "id": asked[0]["id"], "verdict": "right"}
    await caller.send(json.dumps(said).encode(), topic="feedback")
    saved = tmp_path / "recorded.jsonl"
    about = ("--kafka", spine.kafka, "--from-topics", "--since", "1h", "--save", str(saved), "--json")
    done = await asyncio.to_thread(
        command, "backtest", str(spine.rules), "--against", str(spine.rules), *about
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["total"]["moved"] == 0
    assert report["registry"] == "live"
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    recorded = [json.loads(line) for line in saved.read_text().splitlines()]
    assert report["records"]["read"] == len(recorded)
    # Other tests of this broker ask without an id.
    lines = {line["request"].get("id"): line for line in recorded}
    for answer in answers:
        line = lines[answer.body["id"]]
        assert "output" not in line["result"]
        assert line["result"]["sides"] == answer.body["sides"]
        assert [attempt["side"] for attempt in line["attempts"]][:1] == ["local"]
        assert line["at"] <= answer.record.timestamp
    assert lines[str(asked[0]["id"])]["feedback"]["verdict"] == "right"
    again = await asyncio.to_thread(command, "backtest", str(spine.rules), str(saved), "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["records"]["with_feedback"] >= 1
