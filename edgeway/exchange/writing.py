"""Writing requests: through an outlet of its own, acknowledged, with a bounded number in flight."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from edgeway.errors import ExchangeClosed, KafkaUnreachable, SendUnknown, TopicsWrong
from schemas.errors import TooLarge
from streams.delivery import BrokerClock, Outgoing, Output, Undeliverable
from streams.delivery.driver import Sink
from streams.delivery.outlet import Outlet

log = logging.getLogger(__name__)

STOP_S = 3.0


class Writer:
    """Writes single records. A producer that is broken or silent is replaced, and what it held is written
    again; who waits for an acknowledgement gives up after `wait_s`, the outlet does not."""

    def __init__(self, sink: Sink, clock: BrokerClock, bootstrap: str, most: int, wait_s: float) -> None:
        self._outlet = Outlet(sink, clock, send_timeout_s=wait_s, substitute=self._refuse)
        self._bootstrap = bootstrap
        self._most = most
        self._wait_s = wait_s
        self._slots = asyncio.Semaphore(most)
        self._refused: dict[int, Undeliverable] = {}
        self._waiting: set[asyncio.Future[None]] = set()
        self._closed = False

    async def start(self) -> None:
        """Connect.

        Raises:
            Unavailable: Kafka does not answer.
        """
        await self._outlet.start()

    @property
    def is_broken(self) -> bool:
        """Whether it can write no more: a bug."""
        return self._outlet.failed.done()

    @property
    def pending(self) -> int:
        """Records that are not acknowledged."""
        return self._outlet.pending

    async def write(
        self, topic: str, key: bytes, value: bytes, headers: Sequence[tuple[str, bytes]], name: str
    ) -> None:
        """Append a record; acknowledged when this returns. `name` is for the error.

        Raises:
            KafkaUnreachable: no room in flight in time; it was not written.
            TopicsWrong, TooLarge: the broker refused it.
            SendUnknown: no acknowledgement in time.
            ExchangeClosed: closed meanwhile; it may have been written.
        """
        if self._closed:
            raise ExchangeClosed
        until = asyncio.get_running_loop().time() + self._wait_s
        await self._slot(until)
        record = Outgoing(topic, key, value, headers)
        acknowledged: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done() -> None:
            self._slots.release()
            error = self._refused.pop(id(record), None)
            if acknowledged.done():
                return
            if error is None:
                acknowledged.set_result(None)
            else:
                acknowledged.set_exception(self._refusal(record, error))

        self._waiting.add(acknowledged)
        try:
            self._outlet.post([record], done)
            async with asyncio.timeout_at(until):
                await acknowledged
        except TimeoutError:
            raise SendUnknown(name, self._wait_s) from None
        finally:
            self._waiting.discard(acknowledged)

    async def stop(self) -> None:
        """Fail all that wait; write what can be written, and disconnect."""
        self._closed = True
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(ExchangeClosed())
                waiting.exception()
        await self._outlet.stop(STOP_S)
        if self._outlet.pending:
            log.warning("%d records were not acknowledged before the end", self._outlet.pending)
        failed = self._outlet.failed
        if failed.done() and (error := failed.exception()) is not None:
            log.error("the outlet of the exchange had failed", exc_info=error)

    async def _slot(self, until: float) -> None:
        try:
            async with asyncio.timeout_at(until):
                await self._slots.acquire()
        except TimeoutError:
            reason = f"{self._most} records are not acknowledged; nothing more is written until they are"
            raise KafkaUnreachable(self._bootstrap, reason) from None
        if self._closed:
            self._slots.release()
            raise ExchangeClosed

    def _refuse(self, record: Outgoing, error: Undeliverable) -> Sequence[Output]:
        self._refused[id(record)] = error
        return ()

    def _refusal(self, record: Outgoing, error: Undeliverable) -> Exception:
        if error.code == "too_large":
            return TooLarge(f"the broker takes no record of {len(record.value)} bytes in {record.topic}")
        return TopicsWrong([str(error)], self._bootstrap)
