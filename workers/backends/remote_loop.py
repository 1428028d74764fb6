"""An event loop in a thread of its own, for backends that ask elsewhere."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from workers.errors import LoadError, WorkerError

T = TypeVar("T")


class Closed(WorkerError):
    """The backend was closed while it was asked."""


class OwnLoop:
    """Runs coroutines for threads that wait for them."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def runs(self) -> bool:
        return self._loop is not None

    def start(self) -> None:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=_serve, args=(self._loop,), name=self._name, daemon=True).start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` returns or raises. Blocks; `work` bounds its own time.

        Raises:
            LoadError: not started, or closed before.
            Closed: closed meanwhile.
        """
        loop = self._loop
        if loop is None:
            work.close()
            raise LoadError(f"{self._name} is not loaded; await load() first")
        try:
            return asyncio.run_coroutine_threadsafe(work, loop).result()
        except CancelledError as error:
            raise Closed(f"{self._name} was closed while it was asked") from error

    def close(self, last: Callable[[], Awaitable[None]] | None = None) -> None:
        """End what runs, then `last`, then the thread; does not wait for them."""
        loop, self._loop = self._loop, None
        if loop is not None:
            asyncio.run_coroutine_threadsafe(_end(last), loop)


async def _end(last: Callable[[], Awaitable[None]] | None) -> None:
    loop = asyncio.get_running_loop()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    try:
        if others:
            await asyncio.wait(others, timeout=2.0)
        if last is not None:
            await last()
    finally:
        loop.stop()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()
