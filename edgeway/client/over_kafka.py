"""The way to Edgeway over Kafka: an exchange of the client's own."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, suppress
from typing import TypeVar

from msgspec.structs import replace

from edgeway.client.asking import GRACE_S
from edgeway.client.errors import ClientClosed, NotSent
from edgeway.client.late import until_late
from edgeway.client.retrying import Clock, Jitter, Retries
from edgeway.errors import ExchangeClosed, ExchangeFull, KafkaUnreachable, SendUnknown
from edgeway.exchange.ports import Event, Exchange, Sent
from schemas import ids
from schemas.bounds import MAX_DEADLINE_MS
from schemas.messages import Request, Result

FRESH_S = 2.0
"""An answer to a new request, or the conflict of its id, is there by then or soon; only after that is looked
for one from before, which the same id and content is not given again."""
LOOK_BACK_MS = 3_600_000
CLOCKS_MS = 60_000
"""The broker's clock may be behind this one's by so much."""
REMEMBERED = 10_000
"""Ids whose time of sending is remembered, so that a later `result(id)` reads little of the log."""
LONG_S = MAX_DEADLINE_MS / 1000 + GRACE_S
_AGAIN = (SendUnknown, KafkaUnreachable, ExchangeFull)
T = TypeVar("T")


class OverKafka:
    """`connect` makes the exchange, which is entered by `open`. `wall_ms` is the time since the epoch."""

    def __init__(
        self,
        connect: Callable[[], AbstractAsyncContextManager[Exchange]],
        retries: Retries,
        jitter: Jitter,
        clock: Clock,
        *,
        fresh_s: float = FRESH_S,
        wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._connect = connect
        self._retries = retries
        self._jitter = jitter
        self._clock = clock
        self._fresh_s = fresh_s
        self._wall_ms = wall_ms
        self._context: AbstractAsyncContextManager[Exchange] | None = None
        self._exchange: Exchange | None = None
        self._sent_ms: OrderedDict[str, int] = OrderedDict()

    async def open(self) -> None:
        """Raises:
        KafkaUnreachable: no broker answers, or refuses the login.
        TopicsWrong: a topic is missing.
        """
        context = self._connect()
        self._exchange = await context.__aenter__()
        self._context = context

    async def close(self) -> None:
        context, self._context, self._exchange = self._context, None, None
        if context is not None:
            await context.__aexit__(None, None, None)

    async def route(
        self, request: Request, *, chosen: bool, on_sent: Callable[[], None], early: bool
    ) -> Result:
        since = self._wall_ms() - LOOK_BACK_MS
        sent = await self._send(request)
        on_sent()
        return await self._answer(sent, since if chosen else None, self._fresh_s)

    async def result(self, request_id: str, tenant: str | None) -> Result:
        key = ids.scoped(tenant, request_id)
        since = self._sent_ms.get(key, self._wall_ms() - LOOK_BACK_MS)
        return await self._answer(key, since, 0.0)

    async def events(self, request: Request, *, chosen: bool) -> AsyncGenerator[Event, None]:
        since = self._wall_ms() - (LOOK_BACK_MS if chosen else 0)
        sent = await self._send(request)
        exchange = self._open()
        events = exchange.events(sent, since if chosen else None, timeout_s=LONG_S)
        late = asyncio.ensure_future(self._late(exchange, sent, since)) if chosen else None
        try:
            async with aclosing(until_late(events, late)) as told:
                async for event in told:
                    yield event
        except ExchangeClosed as exc:
            raise ClientClosed(f"the client was closed before request {sent.id} was answered") from exc

    async def cancel(self, request_id: str, tenant: str | None) -> None:
        await self._again(request_id, lambda: self._open().cancel(request_id, tenant))

    async def _send(self, request: Request) -> Sent:
        self._sent_ms[ids.scoped(request.tenant, request.id or "")] = self._wall_ms() - CLOCKS_MS
        if len(self._sent_ms) > REMEMBERED:
            self._sent_ms.popitem(last=False)
        return await self._again(request.id or "", lambda: self._open().send(request))

    async def _again(self, request_id: str, once: Callable[[], Awaitable[T]]) -> T:
        """Try until there is an acknowledgement: always the same record under the same id."""
        failed = 0
        while True:
            try:
                return await once()
            except _AGAIN as exc:
                failed += 1
                pause = self._retries.wait_s(failed, None, self._jitter)
                if pause is None:
                    raise NotSent(request_id, failed, str(exc).partition("\n")[0]) from exc
            except ExchangeClosed as exc:
                raise ClientClosed(f"the client is closed; request {request_id} may have been sent") from exc
            await self._clock.sleep(pause)

    async def _answer(self, sent: Sent | str, since_ms: int | None, fresh_s: float) -> Result:
        """The answer; one from before, since `since_ms`, is looked for after `fresh_s`."""
        exchange = self._open()
        waiting = asyncio.ensure_future(self._wait(exchange, sent))
        try:
            if since_ms is not None:
                await asyncio.wait((waiting,), timeout=fresh_s)
                if not waiting.done():
                    earlier = await self._earlier(exchange, waiting, sent, since_ms)
                    if earlier is not None:
                        return earlier
            return await waiting
        finally:
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait((waiting,))

    async def _late(self, exchange: Exchange, sent: Sent, since_ms: int) -> Result | None:
        """An answer from before, once a fresh one would be there; None where the log holds none."""
        await asyncio.sleep(self._fresh_s)
        with suppress(KafkaUnreachable, TimeoutError, ExchangeClosed):
            found = await exchange.earlier(sent, since_ms)
            # A conflict comes under a derived id: the caller knows its own.
            return None if found is None else replace(found, id=sent.id)
        return None

    async def _wait(self, exchange: Exchange, sent: Sent | str) -> Result:
        while True:
            try:
                return await exchange.answer(sent, LONG_S)
            except TimeoutError:
                continue
            except ExchangeFull:
                await self._clock.sleep(self._retries.first_s)
            except ExchangeClosed as exc:
                raise ClientClosed("the client was closed before the answer came") from exc

    async def _earlier(
        self, exchange: Exchange, waiting: asyncio.Future[Result], sent: Sent | str, since_ms: int
    ) -> Result | None:
        """What the log holds; None also once the answer has come otherwise, or where Kafka is away now."""
        looking = asyncio.ensure_future(exchange.earlier(sent, since_ms))
        try:
            await asyncio.wait((looking, waiting), return_when=asyncio.FIRST_COMPLETED)
            if not looking.done():
                return None
            with suppress(KafkaUnreachable, TimeoutError, ExchangeClosed):
                return looking.result()
            return None
        finally:
            looking.cancel()
            await asyncio.wait((looking,))

    def _open(self) -> Exchange:
        if self._exchange is None:
            raise ClientClosed("the client is not open; use it inside `async with`")
        return self._exchange
