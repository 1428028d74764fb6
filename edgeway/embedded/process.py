"""One broker process: spawned with a parent-death signal, its output in a file."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from edgeway.embedded import launcher
from edgeway.embedded.errors import EmbeddedKafkaError

POLL = 0.05
KILL_WAIT = 10.0
LOG_KEPT = 16 * 1024 * 1024

# Linux sends the parent-death signal when the *thread* that forked ends. All forks happen in this one,
# which lives as long as the interpreter.
_spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="edgeway-spawner")


class BrokerProcess:
    """A running broker. `log` is appended to; at a start above 16 MiB it first becomes ``.1``."""

    def __init__(self, command: Sequence[str], log: Path, inherited: Sequence[int] = ()) -> None:
        """Start `command`. `inherited` file descriptors stay open in it (the lock of the data folder).

        Raises:
            EmbeddedKafkaError: the program could not be started.
        """
        self.log = log
        if log.exists() and log.stat().st_size > LOG_KEPT:
            log.replace(log.with_name(log.name + ".1"))
        wrapped = [sys.executable, "-I", "-S", launcher.__file__, str(os.getpid()), *command]
        with log.open("ab") as out:
            self._offset = out.tell()
            try:
                self._child = _spawner.submit(
                    lambda: subprocess.Popen(
                        wrapped,
                        stdin=subprocess.DEVNULL,
                        stdout=out,
                        stderr=subprocess.STDOUT,
                        pass_fds=tuple(inherited),
                        start_new_session=True,  # Ctrl-C at the terminal is for us, not for the broker.
                    )
                ).result()
            except (OSError, RuntimeError) as exc:
                raise EmbeddedKafkaError(f"cannot start {command[0]}: {exc}") from exc

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def alive(self) -> bool:
        return self._child.poll() is None

    @property
    def exit_code(self) -> int | None:
        return self._child.poll()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; nothing happens if the process has ended."""
        if self.alive:
            self._child.send_signal(number)

    def wait(self, timeout: float) -> bool:
        """Whether it ended within `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while self.alive:
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL)
        return True

    def kill(self) -> None:
        """SIGKILL, and wait for the end.

        Raises:
            EmbeddedKafkaError: it did not end within 10 s (a process stuck in the kernel).
        """
        self.signal(signal.SIGKILL)
        if not self.wait(KILL_WAIT):
            raise EmbeddedKafkaError(f"broker process {self.pid} does not end after SIGKILL")

    def said(self, limit: int = 64 * 1024) -> str:
        """The end of what this process wrote, at most `limit` bytes."""
        with self.log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(min(self._offset, size), size - limit))
            return file.read().decode("utf-8", errors="replace")
