"""The way to Edgeway over HTTP: a gateway's `POST /route` and `/requests/{id}`."""

from __future__ import annotations

import itertools
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

import httpx
import msgspec

from edgeway.client.asking import wait_of
from edgeway.client.errors import ClientClosed
from edgeway.client.replies import MSGPACK, Again, Meaning, Open, event_of, meaning_of
from edgeway.client.retrying import Clock, Jitter, Retries
from edgeway.client.sse import SseParser
from edgeway.client.tries import Tries
from edgeway.exchange.ports import Event
from schemas import codec
from schemas.messages import Request, Result
from streams.settings import Secret

WAIT_S = 25
"""A call waits so long at most, then asks again: proxies cut what is silent for a minute, often for 30 s."""
READ_S = WAIT_S + 15.0
CONNECT_S = 10.0
POOLS = 8
MOST_KEPT = 128
"""Connections kept open without a request."""
SSE = "text/event-stream"
REMEMBERED = 10_000
_LOST = (httpx.RequestError, ValueError)
"""The connection, or what came over it, broke: also an event that cannot be read."""


class Pools(httpx.AsyncBaseTransport):
    """Pools of connections, taken by turns: one pool takes time for each of its connections at each call."""

    def __init__(self, verify: Any, pools: int = POOLS) -> None:
        # As many connections as the caller has requests under way; what bounds those is the caller's.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=MOST_KEPT // pools)
        # Once for all: to read the certificates that there are takes 0.1 s.
        context = httpx.create_ssl_context() if verify is True else verify
        self._pools = [httpx.AsyncHTTPTransport(verify=context, limits=limits) for _ in range(pools)]
        self._turns = itertools.count()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await self._pools[next(self._turns) % len(self._pools)].handle_async_request(request)

    async def aclose(self) -> None:
        for pool in self._pools:
            await pool.aclose()


def http_client(
    base: str, token: Secret | None, verify: Any, transport: httpx.AsyncBaseTransport | None = None
) -> httpx.AsyncClient:
    """The HTTP client for one gateway. `transport` stands in for the network."""
    headers = {"user-agent": "edgeway-client"}
    if token is not None:
        headers["authorization"] = f"Bearer {token.reveal()}"
    if not base.startswith("https:"):
        verify = False
    return httpx.AsyncClient(
        base_url=base,
        headers=headers,
        timeout=httpx.Timeout(READ_S, connect=CONNECT_S),
        transport=Pools(verify) if transport is None else transport,
    )


class OverHttp:
    """`connect` makes the HTTP client, at `open`."""

    def __init__(
        self,
        connect: Callable[[], httpx.AsyncClient],
        retries: Retries,
        jitter: Jitter,
        clock: Clock,
        *,
        wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._connect = connect
        self._retries = retries
        self._jitter = jitter
        self._clock = clock
        self._wall_ms = wall_ms
        self._http: httpx.AsyncClient | None = None
        self._until: OrderedDict[str, int] = OrderedDict()

    async def open(self) -> None:
        """Connections are made as they are needed."""
        self._http = self._connect()

    async def close(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    async def route(
        self, request: Request, *, chosen: bool, on_sent: Callable[[], None], early: bool
    ) -> Result:
        request_id = request.id or ""
        self._until[request_id] = self._wall_ms() + int(wait_of(request.deadline_ms, None) * 1000)
        if len(self._until) > REMEMBERED:
            self._until.popitem(last=False)
        prefer = "respond-async" if early else f"wait={WAIT_S}"
        meaning = await self._post(request, {"prefer": prefer})
        on_sent()
        if isinstance(meaning, Open):
            place = meaning.location or self._place(request_id, None)
            return await self._follow(request_id, place, taken=True)
        return meaning

    async def result(self, request_id: str, tenant: str | None) -> Result:
        return await self._follow(request_id, self._place(request_id, tenant), taken=False)

    async def cancel(self, request_id: str, tenant: str | None) -> None:
        await self._again(request_id, lambda: self._once("DELETE", self._place(request_id, tenant), {}))

    async def events(self, request: Request, *, chosen: bool) -> AsyncGenerator[Event, None]:
        """Where the connection is lost, the request is sent again, and what was told is left out."""
        told: set[tuple[str, int, str]] = set()
        tries = self._tries(request.id or "")
        while True:
            try:
                async with aclosing(self._stream(request)) as events:
                    async for event in events:
                        # What another gateway makes of itself has the time of the call there.
                        once = event.kind in ("accepted", "result")
                        mark = (event.kind, 0, "") if once else (event.kind, event.at, repr(event.data))
                        if mark not in told:
                            told.add(mark)
                            yield event
                        if event.kind == "result":
                            return
                trouble: Again | Exception = EOFError("the stream ended without a result")
            except _LOST as exc:
                trouble = exc
            except _NotNow as exc:
                trouble = exc.again
            await tries.pause(trouble)

    async def _stream(self, request: Request) -> AsyncGenerator[Event, None]:
        headers = _headers(request) | {"accept": SSE}
        body = codec.encode(request)
        async with self._open().stream("POST", "/route", content=body, headers=headers) as response:
            if SSE not in response.headers.get("content-type", ""):
                said = await response.aread()
                meaning = meaning_of(response.status_code, response.headers, said, _now(), request)
                if isinstance(meaning, Result):
                    yield _told(meaning)
                elif isinstance(meaning, Again):
                    raise _NotNow(meaning)
                return
            parser = SseParser()
            async for chunk in response.aiter_bytes():
                for server in parser.feed(chunk):
                    yield event_of(server)

    async def _post(self, request: Request, headers: dict[str, str]) -> Result | Open:
        body = codec.encode(request)
        every = _headers(request) | {"accept": MSGPACK} | headers

        async def once() -> Meaning:
            response = await self._open().post("/route", headers=every, content=body)
            return meaning_of(response.status_code, response.headers, response.content, _now(), request)

        return await self._again(request.id or "", once)

    async def _follow(self, request_id: str, location: str, *, taken: bool) -> Result:
        """Ask at `location` until the answer is there."""
        headers = {"accept": MSGPACK, "prefer": f"wait={WAIT_S}"}
        while True:
            look = await self._again(request_id, lambda: self._once("GET", location, headers), taken=taken)
            if not isinstance(look, Open):
                return look
            taken = True
            # A gateway that does not wait must not be asked without a pause.
            await self._clock.sleep(self._jitter() * self._retries.first_s)

    async def _again(
        self, request_id: str, once: Callable[[], Awaitable[Meaning]], *, taken: bool = False
    ) -> Result | Open:
        """Try until there is a word for good: always the same call under the same id."""
        tries = self._tries(request_id, taken)
        while True:
            try:
                meaning = await once()
                if not isinstance(meaning, Again):
                    return meaning
                trouble: Again | Exception = meaning
            except _LOST as exc:
                trouble = exc
            await tries.pause(trouble)

    def _tries(self, request_id: str, taken: bool = False) -> Tries:
        return Tries(request_id, self._retries, self._jitter, self._clock, taken=taken)

    async def _once(self, method: str, path: str, headers: Mapping[str, str]) -> Meaning:
        response = await self._open().request(method, path, headers=dict(headers))
        return meaning_of(response.status_code, response.headers, response.content, _now())

    def _place(self, request_id: str, tenant: str | None) -> str:
        """Where the answer is; `until` lets a replica that was not asked know that there will be one."""
        until = self._until.get(request_id)
        said = {"until": until, "tenant": tenant}
        query = urlencode({name: value for name, value in said.items() if value is not None})
        return f"/requests/{quote(request_id, safe='')}{'?' if query else ''}{query}"

    def _open(self) -> httpx.AsyncClient:
        if self._http is None:
            raise ClientClosed("the client is not open; use it inside `async with`")
        return self._http


class _NotNow(Exception):
    """The gateway refused a stream for now."""

    def __init__(self, again: Again) -> None:
        super().__init__(str(again.refusal))
        self.again = again


def _headers(request: Request) -> dict[str, str]:
    """The id stands in the body too; in the header, for proxies, where it is one without quoting."""
    key = request.id or ""
    fits = key.isascii() and key.isprintable() and not set(key) & set(' "\\')
    return {"content-type": MSGPACK} | ({"idempotency-key": key} if fits else {})


def _told(result: Result) -> Event:
    return Event("result", 0, msgspec.to_builtins(result))


def _now() -> datetime:
    return datetime.now(UTC)
