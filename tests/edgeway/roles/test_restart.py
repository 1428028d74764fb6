"""A worker whose model hangs starts itself again."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeway.cli import role
from edgeway.errors import PortTaken
from edgeway.roles import serving
from edgeway.roles.restart import CALM_S, COUNT, next_restart
from streams.delivery import Stuck, TwinTookOver

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import os, sys, time
from edgeway.roles.restart import COUNT, restart
print(os.getpid(), os.environ.get(COUNT), sys.argv[1:], flush=True)
print(os.getcwd(), os.environ["GIVEN"], os.environ.get("ADDED"), file=sys.stderr, flush=True)
os.environ.update({"ADDED": "x", "GIVEN": "changed"})
os.chdir("/")
if os.environ.get(COUNT, "0") < sys.argv[1]:
    import threading
    threading.Thread(target=time.sleep, args=(60,)).start()
    restart(1.0)
"""


def test_pauses_grow_while_restarts_follow_one_another() -> None:
    environment: dict[str, str] = {}
    pauses = []
    for _ in range(9):
        due = next_restart(environment, 5.0)
        pauses.append(due.pause_s)
        environment[COUNT] = str(due.number)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert next_restart(environment, CALM_S) == (1, 1.0), "a calm time in between forgives"


@given(st.text(max_size=12), st.floats(0, 1e6))
def test_whatever_the_variable_says_there_is_a_pause(text: str, lived_s: float) -> None:
    due = next_restart({COUNT: text}, lived_s)
    assert due.number >= 1
    assert 1.0 <= due.pause_s <= 60.0


def test_the_same_process_runs_the_same_command_again_and_hung_threads_end(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GIVEN": "as it was"}
    began = time.monotonic()
    ran = subprocess.run(
        [sys.executable, str(program), "1", "--flag", "two words"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )
    assert ran.stderr.splitlines().count(f"{tmp_path} as it was None") == 2, ran.stderr
    lines = [line.split(" ", 2) for line in ran.stdout.splitlines()]
    assert ran.returncode == 0, ran.stderr
    assert [line[1] for line in lines] == ["None", "1"]
    assert lines[0][0] == lines[1][0], "the process id stays"
    assert lines[0][2] == lines[1][2] == "['1', '--flag', 'two words']"
    assert 1.0 <= time.monotonic() - began < 30.0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_during_the_pause_is_obeyed_at_once(tmp_path: Path, number: signal.Signals) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GIVEN": "", COUNT: "6"}
    with subprocess.Popen(
        [sys.executable, str(program), "7"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(0.5)
        child.send_signal(number)
        assert child.wait(5) == -number


class Ended(Exception):
    """What would end this process."""


@pytest.mark.parametrize(
    ("name", "on_stuck", "error", "how"),
    [
        ("worker", "restart", Stuck("a model"), "restart"),
        ("worker", "exit", Stuck("a model"), "exit 1"),
        ("up", "restart", Stuck("a model"), "exit 1"),
        ("router", "restart", Stuck("a record"), "exit 1"),
        ("worker", "restart", TwinTookOver("a twin"), "exit 1"),
    ],
)
async def test_only_a_worker_that_hangs_starts_again(
    monkeypatch: pytest.MonkeyPatch, name: str, on_stuck: str, error: Exception, how: str
) -> None:
    async def nothing() -> None: ...

    async def fails(stop: asyncio.Event) -> None:
        raise error

    def ends(how: str) -> Callable[[float], None]:
        def end(number: float) -> None:
            raise Ended(how.format(number))

        return end

    monkeypatch.setattr(serving, "restart", ends("restart"))
    monkeypatch.setattr(serving, "_exit_now", ends("exit {:d}"))
    process: Any = SimpleNamespace(
        name=name,
        settings=SimpleNamespace(on_stuck=on_stuck),
        start=nothing,
        stop=nothing,
        host=SimpleNamespace(wait=fails),
    )
    with pytest.raises(Ended, match=f"^{how}$"):
        await serving._until_stopped(process, asyncio.Event(), None)


@pytest.mark.parametrize("again", [True, False])
def test_the_port_is_waited_for_where_it_was_ones_own(monkeypatch: pytest.MonkeyPatch, again: bool) -> None:
    monkeypatch.setenv(COUNT, "1" if again else "")
    other = socket.socket()
    other.bind(("127.0.0.1", 0))
    other.listen()
    port = other.getsockname()[1]
    threading.Timer(0.5, other.close).start()
    if not again:
        with pytest.raises(PortTaken):
            role._require_port("127.0.0.1", port)
        return
    began = time.monotonic()
    role._require_port("127.0.0.1", port)
    assert time.monotonic() - began < 10.0


def test_the_port_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COUNT, "1")
    monkeypatch.setattr(role, "PORT_S", 1)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(PortTaken):
            role._require_port("127.0.0.1", other.getsockname()[1])
