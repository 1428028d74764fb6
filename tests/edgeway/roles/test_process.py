"""A process says in time that it hangs, and stops in time whatever hangs."""

from __future__ import annotations

import asyncio
import logging
import time
from types import SimpleNamespace
from typing import Any

import pytest

from edgeway.roles.process import GRACE_S, Process
from streams.delivery.watchdog import Watchdog


class Hanging:
    """A part that swallows its cancellation."""

    async def stop(self, deadline_s: float) -> None:
        until = time.monotonic() + 3.2
        while time.monotonic() < until:
            try:
                await asyncio.sleep(3.2)
            except asyncio.CancelledError:
                continue


class Fine:
    def __init__(self) -> None:
        self.stopped = 0

    async def stop(self, deadline_s: float) -> None:
        self.stopped += 1


def process(**more: Any) -> Process:
    settings: Any = SimpleNamespace(watchdog_s=60.0, stop_s=0.2)
    parts: dict[str, Any] = {"rules": None, "clock": None, "outlet": Fine(), "host": Fine(), **more}
    return Process("p", settings, options={}, **parts)


def serving(since: Any) -> Process:
    """A process with one group whose records all move on, while one thread of it runs since `since()`."""
    inlet: Any = SimpleNamespace(
        settings=SimpleNamespace(group="g"),
        lanes={},
        waiting=0,
        finished=5,
        lost=0,
        committer=SimpleNamespace(lease=SimpleNamespace(is_fresh=lambda now: True)),
    )
    found = process(inlets=[inlet])
    found.watchdogs["g"] = Watchdog(60.0, time.monotonic())
    found.running_since["g"] = since
    return found


async def test_a_run_of_half_the_watchdogs_time_makes_the_process_unhealthy() -> None:
    assert serving(lambda: None).health()["ok"]
    assert serving(lambda: time.monotonic() - 29.0).health()["ok"]
    shown = serving(lambda: time.monotonic() - 31.0).health()
    assert not shown["ok"]
    assert shown["groups"]["g"]["running_s"] >= 31.0


async def test_it_is_logged_once_and_so_is_its_end(caplog: pytest.LogCaptureFixture) -> None:
    since: list[float | None] = [time.monotonic() - 31.0]
    found = serving(lambda: since[0])
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            await found._watch()
        assert [line.levelname for line in caplog.records] == ["WARNING"]
        assert "g: a run takes 31 s" in caplog.text
        since[0] = None
        for _ in range(3):
            await found._watch()
    assert len(caplog.records) == 2
    assert "has ended" in caplog.text


@pytest.mark.parametrize("hangs", ["host", "outlet", "role"])
async def test_a_stop_ends_within_its_time_whatever_hangs(hangs: str) -> None:
    parts: dict[str, Any] = {"host": Fine(), "outlet": Fine(), "role": Fine()}
    parts[hangs] = Hanging()
    found = process(host=parts["host"], outlet=parts["outlet"])
    found.after.append(lambda: parts["role"].stop(1.0))
    began = time.monotonic()
    await found.stop()
    assert time.monotonic() - began < 0.2 + GRACE_S + 0.5
    assert [part.stopped for part in parts.values() if isinstance(part, Fine)] == [1, 1]
