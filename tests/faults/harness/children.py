"""Processes under a small supervisor: restarted when they end, killed and stopped by name."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from edgeway.embedded import launcher

RESTART_AFTER_S = 0.5
HOPELESS = 3
"""A process that ended so often before it was ready never will be."""
ROOT = Path(__file__).resolve().parents[3]


@dataclass(slots=True)
class Child:
    """One supervised process: its exits, and how many of them nobody asked for."""

    name: str
    command: Sequence[str]
    log: Path
    process: asyncio.subprocess.Process | None = None
    keeper: asyncio.Task[None] | None = None
    wanted: bool = True
    killed: bool = False
    starts: int = 0
    exits: list[int] = field(default_factory=list)
    unasked: list[int] = field(default_factory=list)

    @property
    def pid(self) -> int | None:
        """Of the process that runs, None between two."""
        running = self.process is not None and self.process.returncode is None
        return self.process.pid if running and self.process is not None else None

    def said(self, text: str) -> int:
        """How often `text` stands in its log."""
        return self.log.read_text(errors="replace").count(text) if self.log.exists() else 0


class Children:
    """All supervised processes by name. They die with this process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.by_name: dict[str, Child] = {}

    def start(self, name: str, arguments: Sequence[str]) -> Child:
        """Run `python -m edgeway ARGUMENTS` as `name` until it is stopped."""
        # Linux sends the parent-death signal; without it a killed test would leave its roles behind.
        dies_with_us = [sys.executable, "-I", "-S", launcher.__file__, str(os.getpid())]
        command = [*dies_with_us, sys.executable, "-m", "edgeway", *arguments]
        child = Child(name, command, self._folder / f"{name}.log")
        child.keeper = asyncio.create_task(self._keep(child), name=f"keep {name}")
        self.by_name[name] = child
        return child

    def kill(self, name: str) -> bool:
        """SIGKILL; the supervisor starts it again. False where it was down."""
        child = self.by_name[name]
        if child.pid is None:
            return False
        child.killed = True
        return self._signal(child, signal.SIGKILL)

    def freeze(self, name: str) -> bool:
        return self._signal(self.by_name[name], signal.SIGSTOP)

    def thaw(self, name: str) -> bool:
        return self._signal(self.by_name[name], signal.SIGCONT)

    async def stop(self, name: str, number: int = signal.SIGTERM, wait_s: float = 15.0) -> int | None:
        """End it for good by signal `number`; its exit code, None where it had to be killed or was down."""
        child = self.by_name[name]
        child.wanted = False
        if child.pid is None or child.process is None or not self._signal(child, number):
            return None
        try:
            return await asyncio.wait_for(child.process.wait(), wait_s)
        except TimeoutError:
            self._signal(child, signal.SIGKILL)
            await child.process.wait()
            return None

    async def stop_all(self) -> None:
        """SIGKILL everything: what a clean stop does is the business of scenarios, not of clearing up."""
        for child in self.by_name.values():
            child.wanted = False
            self._signal(child, signal.SIGKILL)
        keepers = [child.keeper for child in self.by_name.values() if child.keeper is not None]
        if keepers:
            _, running = await asyncio.wait(keepers, timeout=10.0)
            for keeper in running:
                keeper.cancel()

    async def until_said(self, names: Sequence[str], text: str, wait_s: float) -> None:
        """Wait until each of `names` has logged `text`.

        Raises:
            AssertionError: one did not; with the end of its log.
        """
        until = time.monotonic() + wait_s
        for name in names:
            child = self.by_name[name]
            while not child.said(text):
                if time.monotonic() > until or len(child.unasked) >= HOPELESS:
                    tail = child.log.read_text(errors="replace")[-1500:] if child.log.exists() else ""
                    raise AssertionError(f"{name} did not say {text!r}; it ended {child.unasked}:\n{tail}")
                await asyncio.sleep(0.1)

    async def _keep(self, child: Child) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "ORT_DISABLE_TELEMETRY": "1"}
        while child.wanted:
            with child.log.open("ab") as out:
                child.process = await asyncio.create_subprocess_exec(
                    *child.command,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    cwd=self._folder,
                    env=environment,
                    start_new_session=True,
                )
            child.starts += 1
            code = await child.process.wait()
            child.exits.append(code)
            if child.wanted and not child.killed:
                child.unasked.append(code)
            child.killed = False
            if child.wanted:
                await asyncio.sleep(RESTART_AFTER_S)

    @staticmethod
    def _signal(child: Child, number: int) -> bool:
        if child.pid is None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(child.pid, number)
            return True
        return False
