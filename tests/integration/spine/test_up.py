"""`edgeway up` alone: a Kafka of its own that starts, keeps its data and ends with it."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.helpers.caller import new_id
from tests.helpers.redis import free_port
from tests.helpers.roles import Role, edgeway
from tests.helpers.spine import DEMO
from tests.integration.spine.samples import SURE, SURE_INTENT

pytestmark = pytest.mark.integration

USAGE, UNANSWERED = 2, 5


@pytest.fixture
def words(tmp_path: Path) -> tuple[str, ...]:
    data, rules = str(tmp_path / "data"), str(DEMO / "rules.json")
    return ("up", "--rules", rules, "--data", data, "--broker-port", str(free_port()), "--partitions", "2")


@pytest.fixture
def started(tmp_path: Path, words: tuple[str, ...]) -> Iterator[list[Role]]:
    roles: list[Role] = []
    yield roles
    for role in roles:
        role.kill()


def ask(kafka: str, request_id: str) -> None:
    words = ("--task", "intent", "--text", SURE, "--id", request_id, "--wait", "--json")
    done = edgeway("send", "--kafka", kafka, *words)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["output"]["intent"] == SURE_INTENT


def brokers(role: Role) -> list[psutil.Process]:
    return psutil.Process(role.pid).children(recursive=True)


def test_it_runs_keeps_its_data_and_leaves_nothing_behind(
    tmp_path: Path, words: tuple[str, ...], started: list[Role]
) -> None:
    kafka = f"127.0.0.1:{words[6]}"
    first = Role(tmp_path, *words).start()
    started.append(first)
    first.wait_ready()
    known = new_id()
    ask(kafka, known)
    assert f"edgeway is up on Kafka {kafka}" in first.said
    assert "oordinator" not in first.said, "a healthy first start has nothing to complain of"
    java = brokers(first)
    assert java
    assert first.terminate() == 0, first.said
    assert psutil.wait_procs(java, timeout=5)[1] == []

    again = Role(tmp_path, *words).start()
    started.append(again)
    again.wait_ready()
    assert edgeway("results", "--kafka", kafka, "--id", known).returncode == 0
    assert edgeway("results", "--kafka", kafka, "--id", "never").returncode == UNANSWERED
    ask(kafka, new_id())
    java = brokers(again)
    again.kill()
    # Killed, it cannot stop its broker; that must end all the same.
    assert psutil.wait_procs(java, timeout=15)[1] == []


def test_a_closed_terminal_ends_it_in_order(
    tmp_path: Path, started: list[Role], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    role = Role(tmp_path, "up", "--broker-port", str(free_port()), "--partitions", "1").start()
    started.append(role)
    role.wait_ready()
    assert "no worker of this process serves anything" in role.said
    assert list(folder.glob("edgeway-kafka-*"))
    assert role.terminate(number=signal.SIGHUP) == 0, role.said
    assert list(folder.glob("edgeway-kafka-*")) == []


def test_the_brokers_port_is_taken(words: tuple[str, ...]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", int(words[6])))
        taken.listen()
        done = edgeway(*words)
    assert done.returncode == USAGE, done.stderr
    assert words[6] in done.stderr
    assert "Traceback" not in done.stderr
