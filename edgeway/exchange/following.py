"""Following a topic for ever: a follower that fails, or is silent for too long, gets a successor."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from streams.delivery import Record, Unavailable

log = logging.getLogger(__name__)

SILENCE_S = 30.0
"""After so long without any answer the connection is given up: a client can hang for ever."""
GROWTH_S = 30.0
LEAST_PAUSE_S = 0.2
MOST_PAUSE_S = 2.0


class Follower(Protocol):
    """Reads a topic without a group; see AiokafkaFollower. Where a call raises Unavailable it is done for."""

    positions: dict[int, int]

    @property
    def partitions(self) -> int: ...
    async def open(self, at: Mapping[int, int], since_ms: int | None) -> None: ...
    async def poll(self, wait_s: float) -> list[Record]: ...
    def only(self, partitions: Collection[int]) -> None: ...
    async def rewind(self, partition: int, since_ms: int) -> None: ...
    async def skip(self, partition: int) -> None: ...
    async def is_caught_up(self) -> bool: ...
    async def has_grown(self) -> bool: ...
    def silent_s(self) -> float: ...
    def lag(self) -> int: ...
    async def close(self) -> None: ...


class Following:
    """A topic from `since_ms` on (an append time; None: from the end), each record at least once. Whatever
    happens to the brokers, `poll` raises nothing: it is empty as long as they are away."""

    def __init__(self, make: Callable[[], Follower], since_ms: int | None) -> None:
        self._make = make
        self._since = since_ms
        self._at: dict[int, int] = {}
        self._looked = time.monotonic()
        self._silent_since = time.monotonic()
        self._pause = LEAST_PAUSE_S
        self.follower: Follower | None = None
        """The one that reads now; None while Kafka is away."""
        self.partitions = 0
        self.opened = 0
        """How many followers there have been."""

    async def start(self) -> None:
        """Open the first follower: from now on nothing is missed.

        Raises:
            Unavailable: Kafka does not answer, or the topic is missing.
        """
        follower = self._make()
        await follower.open(self._at, self._since)
        self.follower, self.opened = follower, self.opened + 1
        # A partition that is added later is read from its beginning.
        self._at, self._since = dict(follower.positions), 0
        self.partitions = follower.partitions
        self._pause, self._looked = LEAST_PAUSE_S, time.monotonic()

    async def poll(self, wait_s: float) -> list[Record]:
        """What came within `wait_s`."""
        try:
            if self.follower is None:
                await self.start()
            assert self.follower is not None
            records = await self.follower.poll(wait_s)
            await self._look(self.follower)
        except Unavailable as error:
            await self.fail(error)
            return []
        return records

    async def fail(self, error: Unavailable) -> None:
        """The follower is done for; wait a moment before the next."""
        log.warning("%s; trying again in %.1f s", error, self._pause)
        await self.stop()
        await asyncio.sleep(self._pause)
        self._pause = min(2 * self._pause, MOST_PAUSE_S)

    async def stop(self) -> None:
        follower, self.follower = self.follower, None
        if follower is not None:
            self._silent_since = time.monotonic() - follower.silent_s()
            self._at = dict(follower.positions)
            await follower.close()

    def silent_s(self) -> float:
        """How long ago the brokers last answered."""
        if self.follower is None:
            return time.monotonic() - self._silent_since
        return self.follower.silent_s()

    async def _look(self, follower: Follower) -> None:
        """Replace a follower that hangs, or that does not read a partition that was added."""
        now = time.monotonic()
        if now - self._looked < GROWTH_S:
            return
        self._looked = now
        if follower.silent_s() > SILENCE_S:
            raise Unavailable(f"no answer for {SILENCE_S:.0f} s")
        if await follower.has_grown():
            await self.stop()
