"""A line that says what a start waits for: without it the first one is a minute of silence."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import IO, Self


class Waiting:
    """Writes `what` on standard error: once, and on a terminal with the seconds so far."""

    def __init__(
        self, what: str, stream: IO[str] | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._what = what
        self._stream = stream if stream is not None else sys.stderr
        self._clock = clock
        self._began = clock()
        self._shown = -1
        self._live = self._stream is not None and self._stream.isatty()

    def __enter__(self) -> Self:
        if self._live:
            self.tick()
        else:
            self._write(f"{self._what} ...\n")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._write(f"\r{self._what} {'failed' if error is not None else 'done'}      \n")

    def tick(self) -> None:
        """On a terminal, the seconds so far where another one has gone by."""
        seconds = int(self._clock() - self._began)
        if self._live and seconds != self._shown:
            self._shown = seconds
            self._write(f"\r{self._what} ... {seconds} s")

    def _write(self, text: str) -> None:
        # A closed or full stream must not keep a broker from starting.
        with contextlib.suppress(OSError, ValueError):
            if self._stream is not None:
                self._stream.write(text)
                self._stream.flush()
