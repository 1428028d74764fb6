"""Roles as child processes, started as a user starts them."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from edgeway.cli import main
from tests.helpers.docker import ROOT
from tests.helpers.redis import free_port

READY_S = 60.0


def edgeway(*words: str, timeout_s: float = 60.0) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself: its exit code and what it wrote."""
    argv = [sys.executable, "-m", "edgeway", *words]
    return subprocess.run(
        argv, cwd=ROOT, env=_environment(), capture_output=True, text=True, timeout=timeout_s, check=False
    )


def command(*words: str) -> subprocess.CompletedProcess[str]:
    """The same in this process, for tests that are not about one: to start it takes a second."""
    out, err, root = io.StringIO(), io.StringIO(), logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        # In a thread: a loop may run in this one.
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            ThreadPoolExecutor(1) as threads,
        ):
            code = threads.submit(main, list(words)).result()
    except SystemExit as wrong_flags:
        code = int(str(wrong_flags.code))
    finally:
        root.handlers[:], root.level = handlers, level
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def edgeways(*commands: Sequence[str], timeout_s: float = 60.0) -> list[subprocess.CompletedProcess[str]]:
    """Several commands at the same time, in their order."""
    with ThreadPoolExecutor(len(commands)) as threads:
        return list(threads.map(lambda words: edgeway(*words, timeout_s=timeout_s), commands))


def fetch(port: int, path: str) -> tuple[int, str]:
    """Status and body of a GET on this host; (0, '') where nobody listens."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


class Role:
    """One `edgeway` process with an HTTP port; `said` is all it wrote."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.port = free_port()
        self.log = folder / f"{words[0]}-{self.port}.log"
        self._argv = [sys.executable, "-m", "edgeway", *words, "--port", str(self.port)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Role:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._argv, cwd=ROOT, env=_environment(), stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        return self

    @property
    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def wait_ready(self, within_s: float = READY_S) -> Role:
        """Return once `/readyz` says so; AssertionError with what it wrote where it ends or takes longer."""
        until = time.monotonic() + within_s
        while fetch(self.port, "/readyz")[0] != 200:
            assert self._running().poll() is None, f"ended early:\n{self.said}"
            assert time.monotonic() < until, f"not ready within {within_s:.0f} s:\n{self.said}"
            time.sleep(0.05)
        return self

    def terminate(self, within_s: float = 30.0, number: signal.Signals = signal.SIGTERM) -> int:
        """A signal; the exit code."""
        self._running().send_signal(number)
        return self._running().wait(within_s)

    def kill(self) -> None:
        """SIGKILL, where it still runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "not started"
        return self._process


def _environment() -> dict[str, str]:
    mine = {name: value for name, value in os.environ.items() if not name.startswith("EDGEWAY_")}
    return mine | {"PYTHONUNBUFFERED": "1", "ORT_DISABLE_TELEMETRY": "1"}
