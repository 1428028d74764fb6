"""How many bytes of objects may be in memory at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

LOOK_S = 0.25


class Room:
    """A bound of bytes that many share; one larger than all of it gets in alone."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._freed = asyncio.Event()
        self.taken = 0

    async def take(self, size: int, wanted: Callable[[], bool] = lambda: True) -> bool:
        """Wait until `size` bytes fit, and take them; False where they were no longer `wanted`."""
        while self.taken and self.taken + size > self._size:
            self._freed.clear()
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._freed.wait()
            except TimeoutError:
                if not wanted():
                    return False
        if not wanted():
            return False
        self.taken += size
        return True

    def give(self, size: int) -> None:
        """Give back what was taken."""
        self.taken -= size
        self._freed.set()
