"""How many partitions the topics have, and what is written to a topic before that is known."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from streams.delivery.driver import Sink
from streams.delivery.errors import Unavailable, Undeliverable

log = logging.getLogger(__name__)

RETRY_S = 0.5
AGAIN_S = 0.3
STALE_S = 60.0
"""Partitions may be added to a live topic: all processes must go over to the new number soon, since a join
and its parts meet in one partition."""


def missing(topic: str) -> Undeliverable:
    """What becomes of a record for a topic that does not exist."""
    return Undeliverable("unknown_capability", f"topic {topic} does not exist; run `edgeway topics apply`")


class Partitions:
    """Counts of partitions, asked for once and now and then again."""

    def __init__(self, sink: Sink, wait_s: float, now: Callable[[], float] = time.monotonic) -> None:
        self._sink = sink
        self._wait = wait_s
        self._now = now
        self._counts: dict[str, int] = {}
        self._asked: dict[str, float] = {}

    def known(self, topic: str) -> int:
        """The number of partitions as last seen; 0 where it is not known."""
        return self._counts.get(topic, 0)

    def is_stale(self, topic: str) -> bool:
        """Whether the count should be asked for again; True once in STALE_S."""
        now = self._now()
        if now - self._asked.get(topic, now) < STALE_S:
            return False
        self._asked[topic] = now
        return True

    async def ask(self, topic: str) -> int:
        """The number of partitions, asked until Kafka answers; 0 where the topic does not exist.

        A topic that was just made is not known to every broker: no topic is missing that was asked for once.
        """
        count = await self._ask(topic)
        if count == 0:
            await asyncio.sleep(AGAIN_S)
            count = await self._ask(topic)
        self._asked[topic] = self._now()
        if count:
            self._counts[topic] = count
        else:
            self._counts.pop(topic, None)
        return count

    async def _ask(self, topic: str) -> int:
        while True:
            try:
                return await self._sink.partitions(topic, self._wait)
            except Unavailable as error:
                log.warning("the partitions of %s are not known yet: %s", topic, error)
                await asyncio.sleep(RETRY_S)
