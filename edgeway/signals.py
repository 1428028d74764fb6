"""The signals that ask a command to stop in order."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Coroutine, Iterator
from typing import Any

import uvloop

from edgeway.errors import Exit


def stopping() -> tuple[signal.Signals, ...]:
    """SIGINT, SIGTERM, and SIGHUP (its terminal was closed) unless that is ignored, as `nohup` has it."""
    asked = (signal.SIGINT, signal.SIGTERM)
    return asked if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (*asked, signal.SIGHUP)


@contextlib.contextmanager
def obeyed_at_once(told: int) -> Iterator[None]:
    """While this lasts SIGTERM and SIGHUP end the process with `told`, and Ctrl-C with 130, at once: for what
    may block the loop for long and has nothing to lose, such as importing an app. Of the main thread alone.
    """

    def end(number: int, _frame: object) -> None:
        os._exit(Exit.INTERRUPTED if number == signal.SIGINT else told)

    before = {number: signal.signal(number, end) for number in stopping()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


def run(main: Coroutine[Any, Any, int], told: int) -> int:
    """Run `main` on uvloop; its exit code, or `told` where SIGTERM or SIGHUP came before it hears them.

    It is then cancelled, so that what it has started (a Kafka) is stopped. SIGINT is KeyboardInterrupt.
    """

    async def heard() -> int:
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        for number in stopping():
            if number != signal.SIGINT:  # the runner's own
                loop.add_signal_handler(number, task.cancel)
        return await main

    try:
        return int(uvloop.run(heard()))
    except asyncio.CancelledError:
        return told
