"""Threads that run blocking work. Daemons: a hung model must not keep the process from ending."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue


class Crew:
    """`threads` threads that take work in order. What they run must not raise.

    concurrent.futures joins its threads at interpreter exit, where one hung model would hang the exit; these
    it cannot.
    """

    def __init__(self, name: str, threads: int) -> None:
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run, name=f"{name} {number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def size(self) -> int:
        return len(self._threads)

    def submit(self, work: Callable[[], None]) -> None:
        self._queue.put(work)

    def close(self) -> None:
        """Let each thread end after the work it has; does not wait."""
        for _ in self._threads:
            self._queue.put(None)

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            work()
