"""One capability behind a plain HTTP endpoint, such as a task's `fallback_url`.

A row is one POST of JSON: its inputs at the top level, and `params` where there are any,
`{"image_url": "https://...", "params": {"length": 40}}`; bytes are base64. Headers: `Idempotency-Key` (the
subtask's id: a redelivered subtask comes under the same key) and `Edgeway-Capability`. docs/library.md says
what may be answered.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import httpx
import msgspec

from schemas.cards import Card
from schemas.errors import ErrorCode
from schemas.messages import Failure
from workers.backends import Answer, Call, Row, kin_of
from workers.backends.http_answer import MAX_ANSWER_BYTES, Trouble, answer_of, refusal_of
from workers.errors import BadInput, LoadError
from workers.faults import told

CONNECT_S = 2.0
TOTAL_S = 60.0
"""The longest that a call may take, however far its deadline is."""
IDLE_S = 3.0
"""How long a connection is kept unused: servers close theirs after 5 s and more, and a request that meets
the close is lost without need."""
CONNECTIONS = 64

_HEADERS = {"content-type": "application/json", "accept": "application/json", "accept-encoding": "identity"}

# At level info it writes whole URLs, with the keys that stand in their queries.
logging.getLogger("httpx").setLevel(logging.WARNING)


class HttpBackend:
    """`url` answers for the capability of `card`; rows of a batch are asked side by side.

    A call that found no connection is made once more, and one that was cut off only where it costs nothing
    (`card.max_cost` 0): an endpoint that ignores the key would be paid twice. Redirects are not followed. An
    error says a cost of 0 where the call was surely not carried out, and none where nobody knows.
    """

    threads = 4
    """How many batches may be under way at the same time: a slow endpoint holds a thread, not a core."""

    def __init__(self, card: Card, url: str, *, timeout_s: float = TOTAL_S) -> None:
        self.card = card
        self._timeout_s = timeout_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: httpx.AsyncClient | None = None
        self._url: httpx.URL | None = None
        self.point(card, url)

    def point(self, card: Card, url: str | None) -> None:
        """From the next call on ask `url` (None: refuse every call) under `card`.

        Raises:
            LoadError: no http or https URL.
        """
        self._url = None if url is None else _url(card.capability, url)
        self.card = card

    async def load(self) -> None:
        if self._loop is not None:
            return
        limits = httpx.Limits(max_connections=CONNECTIONS, keepalive_expiry=IDLE_S)
        # The whole call is timed, not each read: an endpoint that trickles would never time out.
        timeout = httpx.Timeout(None, connect=CONNECT_S)
        self._client = httpx.AsyncClient(limits=limits, timeout=timeout, headers=_HEADERS)
        self._loop = asyncio.new_event_loop()
        name = f"http {self.card.capability}"
        threading.Thread(target=_serve, args=(self._loop,), name=name, daemon=True).start()

    def kin(self, row: Row) -> Hashable:
        return kin_of(row)

    def infer(self, rows: Sequence[Row]) -> list[Answer]:
        return self.infer_calls(rows, [Call("", time.monotonic() + self._timeout_s)] * len(rows))

    def infer_calls(self, rows: Sequence[Row], calls: Sequence[Call]) -> list[Answer]:
        work = self._all(rows, calls)
        if self._loop is None:
            work.close()
            raise LoadError(f"{self.card.capability} is not loaded; await load() first")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        if self._loop is not None and self._client is not None:
            asyncio.run_coroutine_threadsafe(_end(self._client, self._loop), self._loop)
        self._loop = self._client = None

    async def _all(self, rows: Sequence[Row], calls: Sequence[Call]) -> list[Answer]:
        pairs = zip(rows, calls, strict=True)
        return await asyncio.gather(*(self._one(row, call, self.card, self._url) for row, call in pairs))

    async def _one(self, row: Row, call: Call, card: Card, url: httpx.URL | None) -> Answer:
        if url is None:
            return _failed(card, "backend_error", "the rules name no fallback_url for it any more")
        try:
            body = body_of(row)
        except BadInput as error:
            return Answer(error=told(error, card.capability))
        try:
            return await self._call(card, url, body, call)
        except Exception as error:  # noqa: BLE001 - raised on, it would have the whole batch asked again
            return Answer(error=told(error, card.capability))

    async def _call(self, card: Card, url: httpx.URL, body: bytes, call: Call) -> Answer:
        left_s = min(self._timeout_s, call.until - time.monotonic())
        headers = {"edgeway-capability": card.capability}
        if call.subtask:
            headers["idempotency-key"] = call.subtask
        try:
            async with asyncio.timeout(left_s):
                status, answer = await self._ask_twice(card, url, body, headers)
        except TimeoutError:
            return _unknown(card, f"{url.host} gave no answer within {max(0.0, left_s):.1f} s")
        except httpx.ConnectError:
            return _failed(card, "backend_error", f"{url.host} cannot be reached, or its certificate is bad")
        except httpx.ConnectTimeout:
            return _failed(card, "backend_error", f"{url.host} took no connection within {CONNECT_S:.0f} s")
        except httpx.HTTPError as error:
            return _unknown(card, f"{url.host} cut the call off ({type(error).__name__})")
        except Trouble as trouble:
            return _unknown(card, f"{url.host} {trouble}")
        refusal = refusal_of(status)
        if refusal is not None:
            text = f"{url.host} answered {status}: {refusal[1]}"
            return _failed(card, refusal[0], text) if status < 500 else _unknown(card, text)
        try:
            return answer_of(answer)
        except Trouble as trouble:
            return _unknown(card, f"{url.host} {trouble}")

    async def _ask_twice(
        self, card: Card, url: httpx.URL, body: bytes, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        try:
            return await self._ask(url, body, headers)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            return await self._ask(url, body, headers)
        except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError):
            if card.max_cost != 0 or "idempotency-key" not in headers:
                raise
            return await self._ask(url, body, headers)

    async def _ask(self, url: httpx.URL, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        assert self._client is not None
        async with self._client.stream(
            "POST", url, content=body, headers=headers, follow_redirects=False
        ) as response:
            if refusal_of(response.status_code) is not None:
                return response.status_code, b""
            if response.headers.get("content-encoding", "identity") != "identity":
                raise Trouble("answered compressed, which was not asked for")
            read = bytearray()
            async for chunk in response.aiter_raw():
                read += chunk
                if len(read) > MAX_ANSWER_BYTES:
                    raise Trouble(f"answered more than {MAX_ANSWER_BYTES} bytes")
            return response.status_code, bytes(read)


def body_of(row: Row) -> bytes:
    """What is posted for a row.

    Raises:
        BadInput: an input named `params` beside params, or something that JSON has no word for.
    """
    body = dict(row.inputs)
    if row.params:
        if "params" in body:
            raise BadInput("inputs.params stands in the way of the request's params; rename the input")
        body["params"] = row.params
    try:
        return msgspec.json.encode(body)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput("the inputs cannot be written as JSON") from error


def build(card: Card, options: Mapping[str, Any]) -> HttpBackend:
    """Options: `url`, and as wanted `timeout_s`.

    Raises:
        LoadError: others, or no http or https URL.
    """
    if sorted(set(options) - {"url", "timeout_s"}) or "url" not in options:
        raise LoadError(f"{card.capability}: an http backend takes the options url and timeout_s")
    return HttpBackend(card, str(options["url"]), timeout_s=float(options.get("timeout_s", TOTAL_S)))


def _url(capability: str, text: str) -> httpx.URL:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL as error:
        raise LoadError(f"{capability}: its URL cannot be read; write https://HOST/PATH") from error
    if url.scheme not in ("http", "https") or not url.host or (url.port or 1) > 65535:
        raise LoadError(f"{capability}: its URL is none of http or https; write https://HOST/PATH")
    return url


def _failed(card: Card, code: ErrorCode, text: str) -> Answer:
    """A call that was not carried out, and costs nothing."""
    return Answer(error=Failure(code=code, message=f"{card.capability}: {text}"), cost=0.0)


def _unknown(card: Card, text: str) -> Answer:
    """A call that may have been carried out: what it cost is left open, which counts as its upper bound."""
    return Answer(error=Failure(code="backend_error", message=f"{card.capability}: {text}"))


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


async def _end(client: httpx.AsyncClient, loop: asyncio.AbstractEventLoop) -> None:
    await client.aclose()
    loop.stop()
