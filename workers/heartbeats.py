"""Heartbeats to `capabilities`: the cards and live figures, every two seconds, whatever the models do."""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
from collections.abc import Awaitable, Callable

from schemas import codec, headers
from schemas.cards import Heartbeat, Offer
from schemas.topics import CAPABILITIES
from streams.delivery import Clock, Outgoing

log = logging.getLogger(__name__)

INTERVAL_S = 2.0
LOOK_S = 0.25
"""How often is looked for news, which are not kept for the next beat."""
Send = Callable[[Outgoing], Awaitable[object] | None]
"""Sends one record; what it returns is awaited where that can be, for one interval at most."""


def beat(worker: str, offers: tuple[Offer, ...], *, started: int, leaving: bool = False) -> Outgoing:
    """The record of one heartbeat of `worker`; `started` in ms on the broker's clock."""
    value = codec.encode(Heartbeat(worker=worker, offers=offers, started=started, leaving=leaving))
    return Outgoing(
        CAPABILITIES, worker.encode(), value, headers.build("heartbeat", worker, f"edgeway/worker/{worker}")
    )


class Heartbeats:
    """Beats from `start` to `stop`; the last one says that the worker is leaving. Whenever `news` differs
    from what it was at the last beat, one more is sent.

    A beat that cannot be sent is logged and the next one tried: the worker's partials tell louder that Kafka
    is away.
    """

    def __init__(
        self,
        worker: str,
        offers: Callable[[], tuple[Offer, ...]],
        send: Send,
        clock: Clock,
        *,
        interval_s: float = INTERVAL_S,
        news: Callable[[], object] | None = None,
    ) -> None:
        self._worker = worker
        self._offers = offers
        self._send = send
        self._started = clock.now()
        self._interval_s = interval_s
        self._news = news or (lambda: None)
        self._look_s = math.inf if news is None else LOOK_S
        self._leaving = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.failed = 0

    def start(self) -> None:
        """Begin on the running loop; the first beat goes out at once."""
        self._task = asyncio.create_task(self.run(), name=f"heartbeats of {self._worker}")

    async def stop(self) -> None:
        """Send the last beat, and end; within two intervals."""
        self._leaving.set()
        if self._task is not None:
            await asyncio.wait((self._task,), timeout=2.0 * self._interval_s)
            self._task.cancel()

    async def run(self) -> None:
        """Beat until `stop`."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while not self._leaving.is_set():
            told = self._news()
            await self._beat(leaving=False)
            # On a fixed grid: three late beats are a death, so a slow send must not add up.
            if loop.time() >= due:
                due = max(due + self._interval_s, loop.time())
            await self._rest(due, told)
        await self._beat(leaving=True)

    async def _rest(self, due: float, told: object) -> None:
        """Wait until `due`, the farewell, or news."""
        loop = asyncio.get_running_loop()
        while (now := loop.time()) < due and not self._leaving.is_set():
            try:
                async with asyncio.timeout_at(min(due, now + self._look_s)):
                    await self._leaving.wait()
            except TimeoutError:
                if self._news() != told:
                    return

    async def _beat(self, *, leaving: bool) -> None:
        record = beat(self._worker, self._offers(), started=self._started, leaving=leaving)
        try:
            sending = self._send(record)
            if inspect.isawaitable(sending):
                async with asyncio.timeout(self._interval_s):
                    await sending
        except Exception as error:  # noqa: BLE001 - Kafka's client raises many kinds; the next beat tries
            self.failed += 1
            log.warning("heartbeat of %s was not sent: %s", self._worker, type(error).__name__)
