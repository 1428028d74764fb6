"""What keeps a role from starting: said in words, with an exit code, in time."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path

import pytest

from tests.helpers.redis import free_port
from tests.helpers.roles import edgeway, edgeways
from tests.helpers.spine import DEMO, Spine, rules

pytestmark = pytest.mark.integration

USAGE, UNREACHABLE, TOPICS = 2, 3, 4
UNREACHABLE_S = 30.0
UNTIDY = re.compile("Traceback|Unclosed|never retrieved|never awaited")


@pytest.fixture
def rules_with_more(tmp_path: Path) -> Path:
    """Rules with a task whose topics nobody has made."""
    said = rules()
    said["tasks"]["later"] = {"capability": "test/later"}
    path = tmp_path / "more.json"
    path.write_text(json.dumps(said), encoding="utf-8")
    return path


def test_no_broker_at_the_address() -> None:
    address = f"127.0.0.1:{free_port()}"
    commands = [
        ("router",),
        ("aggregator",),
        ("worker", "--rules", "examples/demo/rules.json"),
        ("up",),
        ("audit",),
        ("send", "--task", "intent", "--text", "x"),
    ]
    ended = edgeways(*((*words, "--kafka", address) for words in commands), timeout_s=UNREACHABLE_S)
    for words, done in zip(commands, ended, strict=True):
        assert done.returncode == UNREACHABLE, (words, done.stderr)
        assert f"Kafka at {address} cannot be reached" in done.stderr, words
        assert UNTIDY.search(done.stderr) is None, done.stderr


def test_topics_that_are_missing(spine: Spine, rules_with_more: Path) -> None:
    words = ("--kafka", spine.kafka, "--rules", str(rules_with_more))
    for done in edgeways(*((role, *words) for role in ("router", "aggregator", "worker"))):
        assert done.returncode == TOPICS, done.stderr
        assert "local.test.later: is missing" in done.stderr
        assert f"edgeway topics apply --kafka {spine.kafka}" in done.stderr
        assert UNTIDY.search(done.stderr) is None, done.stderr


def test_a_port_that_is_taken(spine: Spine) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = edgeway("router", "--kafka", spine.kafka, "--rules", str(spine.rules), "--port", port)
    assert done.returncode == USAGE, done.stderr
    assert f"port {port} on 127.0.0.1 is taken by another process" in done.stderr


def test_a_capability_that_does_not_exist(spine: Spine) -> None:
    about = ("--kafka", spine.kafka, "--rules", str(DEMO / "rules.json"))
    done = edgeway("worker", *about, "--capabilities", "local/nlp/intnet")
    assert done.returncode == USAGE, done.stderr
    assert "unknown capability local/nlp/intnet" in done.stderr
    assert "local/nlp/intent" in done.stderr


WRONG = {
    '{"tasks": {"a": {"sied": "local"}}}': "$.tasks.a.sied",
    "{": "line 1",
    '{"apps": ["none.py"]}': "none.py is not found",
    '{"apps": []}': "no app to serve",
}


def test_rules_that_are_wrong(spine: Spine, tmp_path: Path) -> None:
    commands = []
    for number, text in enumerate(WRONG):
        path = tmp_path / f"wrong{number}.json"
        path.write_text(text, encoding="utf-8")
        commands.append(("worker", "--kafka", spine.kafka, "--rules", str(path)))
    for done, says in zip(edgeways(*commands), WRONG.values(), strict=True):
        assert done.returncode == USAGE, done.stderr
        assert says in done.stderr
        assert UNTIDY.search(done.stderr) is None, done.stderr
