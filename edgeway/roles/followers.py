"""Topics that a process follows without a group, as long as it lives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from edgeway.roles.process import Process
from streams.delivery import Record, Unavailable
from streams.delivery.drivers.aiokafka_reader import Tail

CATCH_UP_S = 30.0


class Follower:
    """Feeds `take` with every record of `topic` since `since_ms`; its end ends the process.

    `reached` is told how long ago, in ms, the whole topic had been read.
    """

    def __init__(
        self,
        process: Process,
        topic: str,
        since_ms: int,
        take: Callable[[Record], None],
        reached: Callable[[float], None] | None = None,
    ) -> None:
        self._process = process
        self._topic = topic
        self._tail = Tail(process.options, topic, since_ms, take, reached)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Follow; returns once the past has been read.

        Raises:
            Unavailable: the topic is missing, or Kafka does not answer.
        """
        self._task = asyncio.create_task(self._tail.run(), name=f"follower of {self._topic}")
        self._process.host.guard(self._task)
        caught_up = asyncio.ensure_future(self._tail.caught_up.wait())
        done, _ = await asyncio.wait(
            {self._task, caught_up}, timeout=CATCH_UP_S, return_when=asyncio.FIRST_COMPLETED
        )
        caught_up.cancel()
        if self._task in done:
            self._task.result()
        if not done:
            raise Unavailable(f"the topic {self._topic} could not be read within {CATCH_UP_S:.0f} s")

    async def stop(self) -> None:
        """Follow no longer. Harmless when repeated."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
