"""`edgeway backtest` without Kafka: files in, a report out, exit codes."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from edgeway.cli import main

NOWHERE = "127.0.0.1:1"


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("EDGEWAY_KAFKA", "EDGEWAY_CONFIG", "EDGEWAY_RULES"):
        monkeypatch.delenv(name, raising=False)
    for name, threshold in (("old.json", 0.9), ("new.json", 0.97)):
        task = {"capability": "ask", "local_threshold": threshold}
        Path(name).write_text(json.dumps({"privacy": {"detectors": []}, "tasks": {"intent": task}}))
    Path("traffic").write_text("\n".join(map(json.dumps, map(line, [0.99, 0.95, 0.5]))))


def line(confidence: float) -> dict[str, Any]:
    name = f"r{int(confidence * 100)}"
    side = "local" if confidence >= 0.9 else "cloud"
    return {
        "request": {"id": name, "task": "intent", "text": "Ludmila"},
        "at": 5,
        "result": {
            "id": name,
            "status": "ok",
            "task": "intent",
            "sides": {"intent": side},
            "output": "Ludmila",
        },
        "attempts": [
            {"step": "intent", "side": "local", "confidence": confidence, "service_ms": 2},
            *(
                [{"step": "intent", "side": "cloud", "service_ms": 40, "cost": 0.5}]
                if side == "cloud"
                else []
            ),
        ],
    }


def report(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> tuple[dict[str, Any], str]:
    assert main(["backtest", *words, "--json"]) == code
    said = capsys.readouterr()
    return json.loads(said.out), said.err


def test_two_rule_files(capsys: pytest.CaptureFixture[str]) -> None:
    found, _ = report(capsys, "new.json", "traffic", "--against", "old.json")
    assert found["total"]["moves"] == {"local_to_cloud": 1, "stays_cloud": 1, "stays_local": 1}
    assert found["total"]["cost"] == {"old": 0.5, "new": 1.0}
    assert (found["old"]["name"], found["new"]["name"]) == ("old.json", "new.json")
    assert found["tasks"]["intent"] == found["total"]


def test_what_was_recorded_is_the_other_where_none_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    found, _ = report(capsys, "new.json", "traffic")
    assert found["old"] == {"name": "recorded", "rules": None, "most_spent_a_day": None}
    assert found["total"]["moves"]["local_to_cloud"] == 1


def test_the_same_file_twice_moves_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    found, _ = report(capsys, "old.json", "traffic", "--against", "old.json")
    assert found["total"]["moved"] == 0
    assert found["total"]["cost"] == {"old": 0.5, "new": 0.5}


def test_tables_for_people_hold_nothing_of_the_payload(capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for _ in range(2):
        assert main(["backtest", "new.json", "traffic", "--against", "old.json"]) == 0
        said = capsys.readouterr()
        texts.append(said.out)
        assert "Ludmila" not in said.out + said.err
    assert texts[0] == texts[1]
    assert "33.3% moved" in texts[0]
    assert "edge to cloud, for example: r95" in texts[0]
    assert "cloud/ask" in texts[0]


def test_feedback_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    Path("said").write_text('{"id": "r99", "verdict": "wrong"}\n\n{"id": "r50", "score": 1.0}\n')
    found, _ = report(capsys, "old.json", "traffic", "--feedback", "said")
    assert found["records"]["with_feedback"] == 2
    assert found["total"]["quality"]["share"] == {"old": 0.5, "new": 0.5}


def test_bad_lines_are_named_and_the_others_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    with Path("traffic").open("a") as stream:
        stream.write("\n{bad\n")
    Path("said").write_text("{bad")
    found, told = report(capsys, "new.json", "traffic", "--feedback", "said", code=2)
    assert found["records"]["compared"] == 3
    assert "line 4: " in told
    assert "line 1: of said: " in told


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    stream = io.TextIOWrapper(io.BytesIO(Path("traffic").read_bytes()))
    monkeypatch.setattr(sys, "stdin", stream)
    found, _ = report(capsys, "new.json", "-")
    assert found["records"]["read"] == 3


def test_a_pipe_is_read_twice_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("pipe")
    text = Path("traffic").read_bytes()
    writing = threading.Thread(target=lambda: Path("pipe").write_bytes(text))
    writing.start()
    found, _ = report(capsys, "new.json", "pipe")
    writing.join()
    assert found["records"]["read"] == 3


def test_bare_requests_need_rules_to_compare_with(capsys: pytest.CaptureFixture[str]) -> None:
    Path("bare").write_text('{"task": "intent", "text": "x"}')
    assert main(["backtest", "new.json", "bare"]) == 2
    assert "--against" in capsys.readouterr().err
    found, _ = report(capsys, "new.json", "bare", "--against", "old.json")
    assert found["records"]["compared"] == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "RULES and RECORDED"),
        (["new.json"], "RULES and RECORDED"),
        (["new.json", "none"], "cannot be read"),
        (["none.json", "traffic"], "none.json"),
        (["traffic", "traffic"], "traffic"),
        (["new.json", "traffic", "--against", "none.json"], "none.json"),
        (["new.json", "traffic", "--registry", "traffic"], "--registry"),
        (["new.json", "traffic", "--feedback", "none"], "--feedback"),
        (["new.json", "traffic", "--from-topics"], "not both"),
        (["new.json", "traffic", "--since", "1h"], "--from-topics only"),
        (["new.json", "traffic", "--save", "x"], "--from-topics only"),
        (["--from-topics"], "--save"),
        (["new.json", "empty"], "no record"),
    ],
)
def test_flags_and_files_that_cannot_be(
    capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    Path("empty").write_text("\n")
    assert main(["backtest", *words]) == 2
    assert told in capsys.readouterr().err


def test_no_kafka_is_three(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backtest", "new.json", "--from-topics", "--kafka", NOWHERE]) == 3
    assert "cannot be reached" in capsys.readouterr().err
