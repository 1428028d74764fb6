"""Isolation: while one record is handled alone, nothing else is in hand anywhere in the process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping

from streams.delivery.lane import Lane
from streams.delivery.records import Place


class Isolation:
    """One a process, shared by its inlets.

    A worker has an inlet for each capability: a record that was alone in its own inlet only was condemned for
    the process's death by a record of another.
    """

    def __init__(self) -> None:
        self._inlets: list[Mapping[Place, Lane]] = []
        self._turn = asyncio.Lock()
        self._open = asyncio.Event()
        self._open.set()

    def add(self, lanes: Mapping[Place, Lane]) -> None:
        """Count the lanes of one more inlet."""
        self._inlets.append(lanes)

    def is_busy(self) -> bool:
        """Whether any record of the process is in hand."""
        return any(lane.is_busy() for lanes in self._inlets for lane in lanes.values())

    async def opened(self) -> None:
        """Wait while a record is alone. What is handed out right after may go."""
        await self._open.wait()

    @contextlib.asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Keep everything else from being handed out; the caller waits for what is in hand already."""
        async with self._turn:
            self._open.clear()
            try:
                yield
            finally:
                self._open.set()
