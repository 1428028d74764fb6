"""Changes of the rules file are adopted by all or by none, whatever way the file is changed."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from edgeway import rules_watch
from edgeway.errors import EdgewayError, UsageError
from edgeway.rules_of import load_rules
from edgeway.rules_watch import Contents, RulesWatch
from schemas.rules import Rules

GOOD = {"a": {"side": "local"}}
OTHER = {"b": {"side": "local"}}


def text(**said: Any) -> bytes:
    return json.dumps({"builtin": False, **said}).encode()


class Role:
    """What a role has of rules, and whether it refuses the next ones."""

    def __init__(self) -> None:
        self.rules: Rules | None = None
        self.refuses: Exception | None = None

    def prepare(self, rules: Rules) -> Callable[[], None]:
        if self.refuses is not None:
            raise self.refuses

        def adopt() -> None:
            self.rules = rules

        return adopt


def watch(path: Path, *roles: Role, **more: Any) -> RulesWatch:
    return RulesWatch(path, load_rules(path.read_bytes(), path), [role.prepare for role in roles], **more)


def refused() -> float:
    return REGISTRY.get_sample_value("edgeway_rules_refused") or 0.0


def reloads(outcome: str) -> float:
    return REGISTRY.get_sample_value("edgeway_rules_reloads_total", {"outcome": outcome}) or 0.0


def version() -> list[str]:
    family = next(family for family in REGISTRY.collect() if family.name == "edgeway_rules_info")
    return [sample.labels["version"] for sample in family.samples]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "rules.json"
    path.write_bytes(text(**GOOD))
    return path


async def test_a_change_is_adopted_by_all(path: Path) -> None:
    roles, taken, before = [Role(), Role()], [], reloads("adopted")
    watching = watch(path, *roles, on_adopt=taken.append)
    await watching.look()
    assert roles[0].rules is None
    path.write_bytes(text(**OTHER))
    await watching.look()
    assert [role.rules.tasks.keys() for role in roles if role.rules] == [{"b"}, {"b"}]
    assert taken == [roles[0].rules] == [watching.rules]
    assert version() == [watching.rules.version]
    assert reloads("adopted") == before + 1


async def test_the_same_rules_written_otherwise_are_no_change(path: Path) -> None:
    role = Role()
    watching = watch(path, role)
    path.write_bytes(text(**GOOD) + b"\n")
    await watching.look()
    assert (role.rules, refused()) == (None, 0)


@pytest.mark.parametrize("bad", [b"{", b"", text(a={"sid": "local"}), text(a={"merge": {"strategy": "no"}})])
async def test_a_bad_edit_keeps_the_last_good_rules(path: Path, caplog, bad: bytes) -> None:
    role, before = Role(), reloads("refused")
    watching = watch(path, role)
    path.write_bytes(bad)
    with caplog.at_level(logging.INFO):
        for _ in range(4):
            await watching.look()
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert all(part in record.getMessage() for part in (str(path), "$", "line 1", watching.rules.version))
    assert (role.rules, refused(), reloads("refused")) == (None, 1, before + 1)
    path.write_bytes(text(**GOOD))
    await watching.look()
    assert refused() == 0


async def test_what_is_bad_once_is_read_again(path: Path, caplog) -> None:
    role = Role()
    watching = watch(path, role)
    for seen in (text(**OTHER)[:7], text(**OTHER)[:-1], text(**OTHER)):
        path.write_bytes(seen)
        await watching.look()
    assert role.rules is not None
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_a_file_that_is_missing_for_a_moment(path: Path, caplog) -> None:
    role = Role()
    watching = watch(path, role)
    path.unlink()
    await watching.look()
    path.write_bytes(text(**GOOD))
    await watching.look()
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    path.unlink()
    for _ in range(3):
        await watching.look()
    assert refused() == 1
    assert sum("cannot be read" in record.getMessage() for record in caplog.records) == 1
    path.write_bytes(text(**OTHER))
    await watching.look()
    assert (refused(), role.rules is not None) == (0, True)


@pytest.mark.parametrize("error", [UsageError("no"), ValueError("no"), KeyError("no")])
async def test_one_role_that_refuses_keeps_all_from_adopting(path: Path, error: Exception) -> None:
    willing, other = Role(), Role()
    other.refuses = error
    watching = watch(path, willing, other)
    path.write_bytes(text(**OTHER))
    for _ in range(3):
        await watching.look()
    assert (willing.rules, refused()) == (None, 1)


async def test_what_was_refused_is_judged_again_in_silence(path: Path, caplog) -> None:
    now, role = 0.0, Role()
    role.refuses = UsageError("its predictor is not there yet")
    watching = watch(path, role, clock=lambda: now)
    path.write_bytes(text(**OTHER))
    for _ in range(4):
        now += 1.0
        await watching.look()
    role.refuses = None
    await watching.look()
    assert role.rules is None
    now += 10.0
    await watching.look()
    assert role.rules is not None
    assert refused() == 0
    assert sum("not there yet" in record.getMessage() for record in caplog.records) == 1


async def test_symlink_swaps_as_a_config_map_does_them(tmp_path: Path) -> None:
    """`rules.json -> ..data/rules.json`, `..data -> ..1`; a change makes `..2` and renames a new `..data`."""

    def mount(number: int, raw: bytes) -> None:
        folder = tmp_path / f"..{number}"
        folder.mkdir()
        (folder / "rules.json").write_bytes(raw)
        fresh = tmp_path / "..data_tmp"
        fresh.symlink_to(folder.name)
        fresh.rename(tmp_path / "..data")

    mount(1, text(**GOOD, apps=["app.py"]))
    path = tmp_path / "rules.json"
    path.symlink_to("..data/rules.json")
    role = Role()
    watching = watch(path, role)
    seen = []
    for number in range(2, 12):
        mount(number, b"{" if number % 3 == 0 else text(**{f"t{number}": {"side": "local"}}, apps=["app.py"]))
        (tmp_path / f"..{number - 1}" / "rules.json").unlink()
        await watching.look()
        await watching.look()
        seen.append(sorted(watching.rules.tasks))
    assert seen == [[f"t{number if number % 3 else number - 1}"] for number in range(2, 12)]
    assert role.rules is not None
    assert role.rules.apps == (str(tmp_path / "app.py"),)


async def test_a_pipe_is_refused_without_waiting_for_its_writer(path: Path, caplog) -> None:
    role = Role()
    watching = watch(path, role)
    path.unlink()
    os.mkfifo(path)
    for _ in range(2):
        await asyncio.wait_for(watching.look(), 2)
    assert "no regular file" in caplog.text
    path.unlink()
    path.write_bytes(text(**OTHER))
    await watching.look()
    assert role.rules is watching.rules


async def test_a_preparation_that_hangs_is_not_started_again(path: Path, caplog, monkeypatch) -> None:
    monkeypatch.setattr(rules_watch, "PREPARE_S", 0.05)
    started, free, now = [], threading.Event(), [0.0]

    def hang(rules: Rules) -> Callable[[], None]:
        started.append(rules.version)
        if "b" in rules.tasks:
            free.wait(20)
        return lambda: None

    watching = watch(path, clock=lambda: now[0])
    watching.prepares = [hang]
    path.write_bytes(text(**OTHER))
    try:
        for _ in range(5):
            await watching.look()
            now[0] += rules_watch.RETRY_S
        assert len(started) == 1
        assert "could not be prepared within" in caplog.text
        path.write_bytes(text(c={"side": "local"}))
        await watching.look()
        assert watching.rules.tasks.keys() == {"c"}
    finally:
        free.set()


async def test_renames_in_place_of_the_file(path: Path) -> None:
    role = Role()
    watching = watch(path, role)
    fresh = path.with_suffix(".new")
    fresh.write_bytes(text(**OTHER))
    fresh.replace(path)
    await watching.look()
    assert role.rules is not None


async def test_a_cluster_that_is_away_puts_it_off(path: Path, caplog) -> None:
    away, role = True, Role()

    async def reach(old: Rules, new: Rules) -> None:
        assert (old.tasks.keys(), new.tasks.keys()) == ({"a"}, {"b"})
        if away:
            raise EdgewayError("no broker answered")

    watching = watch(path, role, before=reach)
    path.write_bytes(text(**OTHER))
    for _ in range(3):
        await watching.look()
    assert role.rules is None
    assert sum("no broker answered" in record.getMessage() for record in caplog.records) == 1
    away = False
    await watching.look()
    assert role.rules is not None


@given(st.lists(st.sampled_from(["good", "also good", "bad", "worse"]), max_size=30))
def test_contents(looks):
    """The last good content is in force; a bad one is refused once, and only after a second look."""
    contents = Contents()
    judged_bad: list[str] = []
    for seen in looks:
        if not contents.wants(seen):
            assert seen in (contents.in_force, contents.refused)
        elif "good" in seen:
            contents.adopted(seen)
        else:
            again = contents.failed(seen)
            assert again == (judged_bad[-1:] == [seen])
            judged_bad = [] if again else [seen]
            continue
        judged_bad = []
    good = [seen for seen in looks if "good" in seen]
    assert contents.in_force == (good[-1] if good else None)
    if looks and "good" in looks[-1]:
        assert contents.refused is None
