"""Slots of their own accord: the lowest free number, free again when its holder dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from edgeway.roles.slots import Slot, hold

CHILD = """
import sys, time
from pathlib import Path
from edgeway.roles.slots import hold
print(hold(("router", "kafka"), Path(sys.argv[1])).name, flush=True)
time.sleep(60)
"""


def held(folder: Path, *what: str) -> Slot:
    slot = hold(what or ("router", "kafka"), folder)
    assert slot is not None
    return slot


def test_each_holder_has_a_number_of_its_own_and_the_lowest_free_is_taken(tmp_path: Path) -> None:
    first, second, third = held(tmp_path), held(tmp_path), held(tmp_path)
    assert len({first.name, second.name, third.name}) == 3
    second.release()
    assert held(tmp_path).name == second.name


def test_those_that_do_something_else_do_not_count(tmp_path: Path) -> None:
    router, worker = held(tmp_path), held(tmp_path, "worker", "kafka")
    assert router.name != worker.name
    assert router.name.endswith("-0")
    assert worker.name.endswith("-0")


def test_two_folders_never_give_the_same_name(tmp_path: Path) -> None:
    assert held(tmp_path / "a").name != held(tmp_path / "b").name


def test_releasing_twice_is_harmless_and_leaves_no_file(tmp_path: Path) -> None:
    slot = held(tmp_path)
    slot.release()
    slot.release()
    assert not slot.path.exists()


def test_a_killed_holder_is_succeeded_under_its_name(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert child.stdout is not None
    name = child.stdout.readline().strip()
    assert held(tmp_path).name != name
    child.send_signal(signal.SIGKILL)
    child.wait(10)
    assert held(tmp_path).name == name


def test_where_no_lock_can_be_had_there_is_no_slot(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert hold(("router",), tmp_path / "file") is None


def test_the_token_is_made_once(tmp_path: Path) -> None:
    held(tmp_path)
    token = (tmp_path / "token").read_text()
    held(tmp_path)
    assert (tmp_path / "token").read_text() == token
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("token")) == ["token"]
