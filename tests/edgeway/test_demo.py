"""The demonstration's shell, without Kafka."""

from __future__ import annotations

import asyncio
import contextlib
import io
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from edgeway.demo import command
from edgeway.errors import EdgewayError


async def test_an_interruption_leaves_no_task_behind() -> None:
    async def wait(_stop: asyncio.Event) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            raise RuntimeError("the host ends")

    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: complaints.append(context))
    process: Any = SimpleNamespace(host=SimpleNamespace(wait=wait))
    before = asyncio.all_tasks()
    running = asyncio.ensure_future(command._while_alive(process, asyncio.sleep(60)))
    await asyncio.sleep(0.01)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    assert asyncio.all_tasks() == before
    assert complaints == []


async def test_roles_that_end_end_the_demonstration() -> None:
    async def wait(_stop: asyncio.Event) -> None:
        return

    process: Any = SimpleNamespace(host=SimpleNamespace(wait=wait))
    with pytest.raises(EdgewayError, match="roles ended"):
        await command._while_alive(process, asyncio.sleep(60))


def test_suggested_commands_are_whole_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(command, "console", Console(file=shown, width=60))
    command._go_on()
    lines = [line for line in shown.getvalue().splitlines() if "edgeway send" in line]
    assert lines
    assert all(line.endswith("--wait") for line in lines)


def test_figures_that_cannot_be_written_are_told_of() -> None:
    with pytest.raises(EdgewayError, match="--json /nosuch/x: the figures were not written"):
        command._write("/nosuch/x", {})
