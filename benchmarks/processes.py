"""The processes under test: started, waited for, measured, stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from edgeway.embedded import launcher

ROOT = Path(__file__).resolve().parents[1]
_TICKS = os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    """A TCP port that nobody has just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Failed(Exception):
    """A process that did not get ready, or ended by itself; the text has the end of its log."""


class Role:
    """One process. It dies with this one."""

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self._environment = dict(environment or {})
        self._log = folder / f"{name}.log"
        self._arguments = arguments
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        # Linux sends the parent-death signal; a killed benchmark leaves nothing behind.
        command = [sys.executable, "-I", "-S", launcher.__file__, str(os.getpid()), sys.executable]
        paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        with self._log.open("wb") as out:
            self._process = await asyncio.create_subprocess_exec(
                *command,
                *self._arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**environment, "ORT_DISABLE_TELEMETRY": "1", **self._environment},
                start_new_session=True,
            )

    async def ready(self, wait_s: float = 60.0) -> None:
        """Wait until it says so.

        Raises:
            Failed: it ended, or did not within `wait_s`.
        """
        until = time.monotonic() + wait_s
        while "is ready" not in self._log.read_text(errors="replace"):
            self.check()
            if time.monotonic() > until:
                raise Failed(f"{self.name} was not ready within {wait_s:.0f} s:\n{self._tail()}")
            await asyncio.sleep(0.05)

    def check(self) -> None:
        """Raises Failed where the process has ended."""
        if self._process is None or self._process.returncode is not None:
            code = None if self._process is None else self._process.returncode
            raise Failed(f"{self.name} ended with {code}:\n{self._tail()}")

    def cpu_s(self) -> float:
        """User and system seconds of all its threads so far, from /proc/PID/stat."""
        if self._process is None:
            return 0.0
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def rss_mb(self) -> float:
        """Memory that it holds now, in MiB."""
        if self._process is None:
            return 0.0
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    async def stop(self) -> None:
        """SIGTERM, and after 15 s SIGKILL."""
        if self._process is None or self._process.returncode is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._process.wait(), 15.0)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    async def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    def _tail(self) -> str:
        return self._log.read_text(errors="replace")[-3000:] if self._log.exists() else ""
