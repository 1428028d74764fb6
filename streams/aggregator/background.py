"""Work that must not delay an answer: one owned task that runs while there is some."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)


class Background:
    """Runs `work` whenever woken; `work` returns once nothing is left to do.

    What `work` raises is logged, and the next call begins anew: its owner's records are safe without it.
    """

    def __init__(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        self._name = name
        self._work = work
        self._task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """There is something to do. Must be called on the event loop."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name=self._name)

    async def rest(self, timeout_s: float | None = None) -> None:
        """Wait until nothing is left to do, or the time is up."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=timeout_s)

    async def close(self, timeout_s: float) -> None:
        """Let it finish within the time, then end it."""
        await self.rest(timeout_s)
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=timeout_s)

    async def _run(self) -> None:
        try:
            await self._work()
        except Exception:
            log.exception("%s failed", self._name)
