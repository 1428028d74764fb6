"""`edgeway explain` without Kafka: files in, records and texts out, exit codes."""

from __future__ import annotations

import io
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from edgeway.cli import main

NOWHERE = "127.0.0.1:1"
RULES = {
    "privacy": {"detectors": ["formats"]},
    "prices": {"cloud/nlp/intent": {"per_call": 0.25}},
    "tasks": {
        "intent": {"capability": "nlp/intent", "local_threshold": 0.9},
        "gone": {"steps": [{"name": "only", "capability": "nlp/intent", "side": "cloud"}]},
    },
}
CARD = {"capability": "nlp/intent", "side": "local", "version": "1", "model": "m", "calibrated": True}


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("EDGEWAY_KAFKA", "EDGEWAY_CONFIG", "EDGEWAY_RULES"):
        monkeypatch.delenv(name, raising=False)
    Path("rules.json").write_text(json.dumps(RULES))


def explain(
    capsys: pytest.CaptureFixture[str], text: str, *words: str, code: int = 0
) -> tuple[list[dict[str, Any]], str]:
    Path("asked").write_text(text, encoding="utf-8")
    assert main(["explain", "asked", "--rules", "rules.json", "--json", *words]) == code
    said = capsys.readouterr()
    return [json.loads(line) for line in said.out.splitlines()], said.err


def test_one_line_a_request_in_order_and_none_lost(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ['{"task": "intent", "text": "hello"}', "", '{"id": "b", "task": ', '{"id": "c", "task": "no"}']
    found, told = explain(capsys, "\n".join(lines), code=2)
    assert [(each["id"], each["line"]) for each in found] == [("line-1", 1), ("b", 3), ("c", 4)]
    assert [each["error"] and each["error"]["code"] for each in found] == [None, "malformed", "unknown_task"]
    assert "line 3: " in told
    assert "3 explained, 1 of them refused, 1 bad lines" in told


def test_every_key_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    found, _ = explain(capsys, '{"task": "intent", "text": "hello"}\n{', code=2)
    keys = {
        "id", "line", "task", "tenant", "cloud_allowed", "privacy", "steps", "decisions", "merge", "rules",
        "registry", "budget", "deadline_ms", "cost_bound", "reservations", "error",
    }  # fmt: skip
    assert all(set(each) == keys for each in found)


@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_and_an_object(capsys: pytest.CaptureFixture[str], indent: int | None) -> None:
    asked = {"task": "intent", "inputs": {"text": "hello"}}
    assert len(explain(capsys, json.dumps([asked, asked], indent=indent))[0]) == 2
    assert len(explain(capsys, json.dumps(asked, indent=indent))[0]) == 1


def test_personal_data_is_told_by_its_kind_alone(capsys: pytest.CaptureFixture[str]) -> None:
    text = json.dumps({"task": "intent", "text": "write to kim.lee@quist-post.org"})
    (found,), told = explain(capsys, text)
    assert found["cloud_allowed"] is False
    assert found["privacy"] == {"level": "high", "reasons": ["email"], "masked": False}
    assert found["decisions"][0]["forbidden"] == {"cloud": ["privacy"]}
    assert main(["explain", "asked", "--rules", "rules.json"]) == 0
    shown = capsys.readouterr()
    assert "found in it: email" in shown.out
    assert "kim.lee" not in json.dumps(found) + told + shown.out + shown.err


def test_a_registry_decides(capsys: pytest.CaptureFixture[str]) -> None:
    Path("cards.json").write_text(json.dumps([CARD, {**CARD, "side": "cloud"}]))
    asked = '{"task": "intent", "text": "hello"}'
    assumed, given = explain(capsys, asked)[0][0], explain(capsys, asked, "--registry", "cards.json")[0][0]
    assert (assumed["registry"], assumed["decisions"][0]["rule"]) == ("assumed", "score")
    assert (given["registry"], given["decisions"][0]["rule"]) == ("given", "confidence_first")
    Path("cards.json").write_text(json.dumps([CARD]))
    alone = explain(capsys, asked, "--registry", "cards.json")[0][0]
    assert alone["decisions"][0]["forbidden"] == {"cloud": ["no_live_capability"]}


def test_a_budget_can_be_taken_as_spent(capsys: pytest.CaptureFixture[str]) -> None:
    asked = '{"task": "intent", "text": "hello"}'
    assert explain(capsys, asked)[0][0]["cost_bound"] == 0.25
    spent = explain(capsys, asked, "--budget", "spent")[0][0]
    assert (spent["budget"], spent["cost_bound"]) == ("spent", 0.0)
    assert spent["decisions"][0]["forbidden"] == {"cloud": ["budget"]}


def test_strict_ends_with_one_where_a_request_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    refused = '{"task": "gone", "text": "hello", "privacy": "high"}'
    assert explain(capsys, refused)[0][0]["error"]["code"] == "no_placement"
    explain(capsys, refused, "--strict", code=1)


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    stream = io.TextIOWrapper(io.BytesIO(b'{"task": "intent"}\n{"task": "intent"}\n'))
    monkeypatch.setattr(sys, "stdin", stream)
    assert main(["explain", "-", "--rules", "rules.json", "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_the_same_request_gives_the_same_text(capsys: pytest.CaptureFixture[str]) -> None:
    Path("asked").write_text('{"task": "intent", "text": "hello"}')
    texts = []
    for _ in range(2):
        assert main(["explain", "asked", "--rules", "rules.json"]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert "capabilities assumed" in texts[0]


def test_without_rules_the_built_in_tasks_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    Path("asked").write_text('{"query": "financial report", "text": "revenue 5"}')
    assert main(["explain", "asked", "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["task"] == "financial_report"
    assert "no --rules" in said.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "what is to be explained"),
        (["none.jsonl"], "cannot be read"),
        (["asked", "--rules", "none.json"], "none.json"),
        (["asked", "--registry", "none.json"], "cannot be read"),
        (["asked", "--registry", "asked"], "entry 1"),
        (["asked", "--registry", "c", "--kafka", NOWHERE], "not both"),
        (["asked", "--now", "5", "--live"], "--now"),
        (["asked", "--now", "-5"], "--now"),
        (["--save-registry", "c", "--registry", "d"], "not both"),
    ],
)
def test_flags_that_cannot_be(capsys: pytest.CaptureFixture[str], words: list[str], told: str) -> None:
    Path("asked").write_text('{"task": "intent"}')
    assert main(["explain", *words]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["asked", "--kafka", NOWHERE], ["--save-registry", "c", "--kafka", NOWHERE]]
)
def test_no_kafka_is_three(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    Path("asked").write_text('{"task": "intent"}')
    assert main(["explain", *words]) == 3
    assert not Path("c").exists()


def test_a_kafka_of_the_environment_is_not_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGEWAY_KAFKA", NOWHERE)
    assert explain(capsys, '{"task": "intent"}')[0][0]["registry"] == "assumed"


def test_ten_thousand_requests_take_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    line = json.dumps({"task": "intent", "text": "I still have not received my new card"}) + "\n"
    began = time.process_time()
    found, _ = explain(capsys, line * 10_000)
    assert len(found) == 10_000
    assert time.process_time() - began < 30
