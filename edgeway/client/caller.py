"""The face of a client, whatever it stands on."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from contextlib import aclosing
from types import TracebackType
from typing import Any, Self, Unpack

from msgspec.structs import replace

from edgeway.client.asking import (
    Asked,
    AskedAlike,
    IdOf,
    Named,
    inputs_of,
    key_of,
    named,
    request_of,
    seconds,
    wait_of,
)
from edgeway.client.errors import ClientClosed, RequestTimeout
from edgeway.client.mapping import Windowed, total_of
from edgeway.client.pending import Pending
from edgeway.client.ports import Transport
from edgeway.client.retrying import Clock
from edgeway.client.waits import OnSent, Wait, Waits
from edgeway.errors import EdgewayError
from edgeway.exchange.ports import Event
from edgeway.progress import bar
from schemas import codec, ids
from schemas.errors import SchemaError
from schemas.messages import Failure, Request, Result

RESULT_S = 45.0
CONCURRENCY = 32
HELD_S = 60.0
"""A submitted request that nobody asks about is let go so long after its caller would have."""
Item = Mapping[str, Any] | str


def new_id() -> str:
    """A random id, 32 hex digits."""
    return uuid.uuid4().hex


class Caller:
    """Requests in, answers out. Used from one event loop, inside `async with` or between `open` and `close`.

    The request's id is chosen before the first try and kept over all of them, so that no retry is run twice.
    Two calls at once with the same id and content share one request.
    """

    def __init__(self, transport: Transport, shown: str, clock: Clock, tenant: str | None = None) -> None:
        self._transport = transport
        self._shown = shown
        self._clock = clock
        self._tenant = tenant
        self._waits = Waits()
        self._is_open = False
        self._opening = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._shown}: {'open' if self._is_open else 'closed'}>"

    async def open(self) -> Self:
        """Connect; `async with` does it.

        Raises:
            KafkaUnreachable, TopicsWrong: over Kafka.
        """
        async with self._opening:
            if not self._is_open:
                await self._transport.open()
                self._is_open = True
        return self

    async def close(self) -> None:
        """End all waits with ClientClosed and let go of the connections. Nothing sent is cancelled."""
        self._is_open = False
        await self._waits.close()
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def route(
        self, task: str | None = None, *, timeout_s: float | None = None, **asked: Unpack[Asked]
    ) -> Result:
        """Send one request and wait for its answer, which may be an error (`raise_for_error`).

        `task` names a task of the rules, or `query` holds a phrase of one; `inputs` are what the models get;
        `privacy="high"` keeps it at the edge; `deadline_ms` is when Edgeway answers with what it has (30 s);
        `max_cost` is the most it may cost. An `id` of one's own makes the call repeatable. `timeout_s` is how
        long to wait here: 15 s beyond the deadline where it is not given.

        Raises:
            SchemaError: what was given makes no request.
            RequestTimeout: no answer within `timeout_s`; names the id.
            NotSent: no acknowledgement in any try; names the id.
            GatewayRefused: HTTP only.
            ClientClosed: the client is not open.
        """
        request, chosen = self._request(task, asked)
        return await self._route(request, chosen, timeout_s)

    async def submit(
        self, task: str | None = None, *, timeout_s: float | None = None, **asked: Unpack[Asked]
    ) -> Pending:
        """Send one request; returns when it is acknowledged. Arguments and errors as `route`."""
        request, chosen = self._request(task, asked)
        wait_s = wait_of(request.deadline_ms, timeout_s)
        wait = self._begin(request, chosen, early=True)
        wait.hold()
        try:
            await wait.acknowledged(wait_s)
        except BaseException:
            wait.release()
            raise
        end = asyncio.get_running_loop().call_later(wait_s + HELD_S, wait.release)
        wait.task.add_done_callback(lambda _task: end.cancel())
        return Pending(wait, wait_s, lambda: self._transport.cancel(wait.id, request.tenant))

    async def result(self, id: str, timeout_s: float = RESULT_S, *, tenant: str | None = None) -> Result:  # noqa: A002
        """The answer to a request that was sent before: by this client or, within the hour over Kafka or
        the ten minutes that a gateway remembers, by another.

        Raises: as `route`; UnknownRequest over HTTP, where Kafka can only wait in vain.
        """
        self._require_open()
        timeout_s = seconds(timeout_s)
        tenant = self._tenant if tenant is None else tenant
        key = (key_of(id, tenant), None)
        wait = self._waits.join(key, id, lambda _sent: self._transport.result(id, tenant))
        return await wait.within(timeout_s)

    async def cancel(self, id: str, *, tenant: str | None = None) -> None:  # noqa: A002
        """Say that the answer to `id` is no longer wanted: what has not started is not started. The answer
        comes all the same, as the error `cancelled` or as what it was already.
        """
        self._require_open()
        tenant = self._tenant if tenant is None else tenant
        key_of(id, tenant)
        await self._transport.cancel(id, tenant)

    async def stream(
        self, task: str | None = None, *, timeout_s: float | None = None, **asked: Unpack[Asked]
    ) -> AsyncIterator[Event]:
        """Send one request and tell what happens to it: accepted, planned, partial, escalated, and last
        `result`, whose data `result_of` turns into the Result. Arguments and errors as `route`.
        """
        request, chosen = self._request(task, asked)
        wait_s = wait_of(request.deadline_ms, timeout_s)
        until = self._clock.now() + wait_s
        async with aclosing(self._transport.events(request, chosen=chosen)) as events:
            while True:
                try:
                    # Around each step alone: a timeout around the yield would end the caller's code too.
                    event = await asyncio.wait_for(anext(events), until - self._clock.now())
                except StopAsyncIteration:
                    return
                except TimeoutError as exc:
                    raise RequestTimeout(request.id or "", wait_s) from exc
                yield event
                if event.kind == "result":
                    return

    async def map(
        self,
        inputs: Iterable[Item] | AsyncIterable[Item],
        task: str | None = None,
        *,
        ids: IdOf | None = None,
        concurrency: int = CONCURRENCY,
        ordered: bool = True,
        progress: bool = False,
        timeout_s: float | None = None,
        **asked: Unpack[AskedAlike],
    ) -> AsyncIterator[Result]:
        """One request for each of `inputs` (a mapping, or a text for the input `text`), `concurrency` at a
        time; their results in the order of the inputs or as they come.

        No more than `concurrency` inputs are read ahead of the results taken. An input that fails, on
        whatever way, gives an error Result and stops nothing. `ids` gives the id of an input's request, so
        that a map that is run again asks for nothing twice. Ending early cancels nothing that was sent.

        Raises:
            ClientClosed: the client is not open, or was closed meanwhile.
        """
        self._require_open()

        def work(item: Item) -> Any:
            return self.settled(item, task, named(ids, item), timeout_s, asked)

        window = Windowed(inputs, work, concurrency, ordered)
        with bar(task or "map", total_of(inputs), progress) as shown:
            async with aclosing(window.results()) as results:
                async for result in results:
                    shown.advance()
                    yield result

    async def settled(
        self, item: Item, task: str | None, chosen: Named, timeout_s: float | None, asked: AskedAlike
    ) -> Result:
        """One input of a `map`: its Result, whatever happens but the end of the client."""
        request_id = chosen if isinstance(chosen, str) else new_id()
        try:
            if isinstance(chosen, SchemaError):
                raise chosen
            more: Asked = {**asked, "inputs": inputs_of(item), "id": request_id}
            request, _ = self._request(task, more)
            return await self._route(request, chosen is not None, timeout_s)
        except ClientClosed:
            raise
        except SchemaError as exc:
            failure = Failure(code=exc.code, message=str(exc))
        except EdgewayError as exc:
            failure = Failure(code="unanswered", message=str(exc))
        tenant = asked.get("tenant") or self._tenant
        return Result(id=request_id, status="error", tenant=tenant, task=task, error=failure)

    def _request(self, task: str | None, asked: Asked) -> tuple[Request, bool]:
        """The request, and whether its id is the caller's own."""
        self._require_open()
        if self._tenant is not None and asked.get("tenant") is None:
            asked = {**asked, "tenant": self._tenant}
        return request_of(task, asked, new_id()), asked.get("id") is not None

    async def _route(self, request: Request, chosen: bool, timeout_s: float | None) -> Result:
        wait_s = wait_of(request.deadline_ms, timeout_s)
        return await self._begin(request, chosen, early=False).within(wait_s)

    def _begin(self, request: Request, chosen: bool, early: bool) -> Wait:
        key = (ids.scoped(request.tenant, request.id or ""), codec.digest_of(request))

        async def begin(on_sent: OnSent) -> Result:
            result = await self._transport.route(request, chosen=chosen, on_sent=on_sent, early=early)
            # A conflict comes under a derived id: the caller knows its own.
            return result if result.id == request.id else replace(result, id=request.id or "")

        return self._waits.join(key, request.id or "", begin)

    def _require_open(self) -> None:
        if not self._is_open:
            raise ClientClosed("the client is not open; use it inside `async with`, or call `open` first")
