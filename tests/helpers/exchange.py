"""An exchange without Kafka: what is sent is answered by a script."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any, Self

import msgspec

from edgeway.errors import ExchangeClosed, ExchangeFull, SendUnknown
from edgeway.exchange import Event, Health, Sent
from edgeway.exchange.answers import Wanted
from schemas import codec, ids
from schemas.messages import Cancel, Failure, Format, Request, Result

Script = Callable[[Request], Awaitable[Result | None]]


async def echo(request: Request) -> Result:
    """Answers at once with the inputs."""
    assert request.id is not None
    return Result(id=request.id, tenant=request.tenant, task=request.task, status="ok", output=request.inputs)


class MemoryExchange:
    """`script` gives each request's answer (None: it has none, see `reply`). It is asked once an id: a repeat
    with the same content has the first one's answer, other content is an `id_conflict`, as with Kafka.

    `sent`, `cancelled` and `headers` show what was written; `fail_with` is raised by the next sends;
    `healthy` is what health() says.
    """

    def __init__(self, script: Script = echo, *, most_waiting: int = 20_000) -> None:
        self.script = script
        self.sent: list[Request] = []
        self.headers: list[tuple[str | None, str | None, Format]] = []
        self.cancelled: list[Cancel] = []
        self.fail_with: Exception | None = None
        self.healthy = True
        self.closed = False
        self._most = most_waiting
        self._digests: dict[str, str] = {}
        self._answers: dict[str, Result] = {}
        self._events: dict[str, list[Event]] = defaultdict(list)
        self._waiters: set[asyncio.Future[None]] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closed = True
        self._wake()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def send(
        self,
        request: Request,
        *,
        traceparent: str | None = None,
        tracestate: str | None = None,
        fmt: Format = "msgpack",
    ) -> Sent:
        self._check()
        if request.id is None:
            request = msgspec.structs.replace(request, id=uuid.uuid4().hex)
        assert request.id is not None
        request = codec.decode_request(codec.encode(request, fmt), fmt)
        if self.fail_with is not None:
            raise self.fail_with
        sent = Sent(ids.scoped(request.tenant, request.id or ""), request.id or "", codec.digest_of(request))
        self.sent.append(request)
        self.headers.append((traceparent, tracestate, fmt))
        first = self._digests.setdefault(sent.key, sent.digest)
        if first != sent.digest:
            self.reply(_conflict(request, sent.digest))
        elif not self._events[sent.key]:
            self.tell(sent.key, "accepted", {"id": sent.id, "tenant": request.tenant})
            task = asyncio.get_running_loop().create_task(self._run(request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return sent

    def lose(self, request_id: str) -> None:
        """Let the next sends end with an unknown outcome."""
        self.fail_with = SendUnknown(request_id, 0.1)

    def tell(self, key: str, kind: Any, data: dict[str, Any]) -> None:
        """Let this happen to a request."""
        self._events[key].append(Event(kind, int(time.time() * 1000), data))
        self._wake()

    def reply(self, result: Result) -> None:
        """Answer a request now; the first answer of an id counts."""
        key = ids.scoped(result.tenant, result.id)
        digest = self._digests.get(key)
        if result.digest is None and digest is not None:
            result = msgspec.structs.replace(result, digest=digest)
        if key not in self._answers:
            self._answers[key] = result
            self.tell(key, "result", msgspec.to_builtins(result))

    def forget(self, key: str) -> None:
        """No longer remember an answer; `earlier` still finds it."""
        self._answers.pop(key, None)

    async def answer(self, sent: Sent | str, timeout_s: float) -> Result:
        async with asyncio.timeout(timeout_s):
            while (found := self._answer(sent)) is None:
                await self._news()
        return found

    def known(self, key: str) -> Result | None:
        return self._answers.get(key)

    def is_open(self, key: str) -> bool:
        return key in self._digests and key not in self._answers

    async def earlier(self, sent: Sent | str, since_ms: int) -> Result | None:
        self._check()
        wanted = Wanted(sent)
        for key in wanted.keys:
            for event in self._events.get(key.decode(), ()):
                if event.kind == "result" and event.at >= since_ms:
                    result = msgspec.convert(event.data, Result)
                    if wanted.is_met_by(result, key):
                        return result
        return None

    async def events(
        self, sent: Sent | str, since_ms: int | None = None, *, timeout_s: float | None = None
    ) -> AsyncIterator[Event]:
        key = sent if isinstance(sent, str) else sent.key
        told = 0
        until = asyncio.get_running_loop().time() + (30.0 if timeout_s is None else timeout_s)
        while True:
            result = await self.earlier(sent, 0)
            happened: Sequence[Event] = self._events.get(key, [])[told:]
            told += len(happened)
            for event in happened:
                if event.kind != "result":
                    yield event
            if result is not None:
                data = msgspec.to_builtins(result) | {"id": ids.unscoped(key)[1]}
                yield Event("result", int(time.time() * 1000), data)
                return
            if not happened:
                try:
                    async with asyncio.timeout_at(until):
                        await self._news()
                except TimeoutError:
                    return

    async def cancel(self, request_id: str, tenant: str | None = None) -> None:
        self._check()
        if self.fail_with is not None:
            raise self.fail_with
        self.cancelled.append(Cancel(id=request_id, tenant=tenant))
        failure = Failure(code="cancelled", message="its caller took it back before it was answered")
        if self.is_open(ids.scoped(tenant, request_id)):
            self.reply(Result(id=request_id, tenant=tenant, status="error", error=failure))

    @property
    def is_healthy(self) -> bool:
        return self.healthy and not self.closed

    def health(self) -> Health:
        count = len(self._answers)
        open_now = len(self._digests.keys() - self._answers.keys())
        return Health(self.is_healthy, 0.0, 0, len(self._waiters), open_now, count, 0)

    def _answer(self, sent: Sent | str) -> Result | None:
        self._check()
        if isinstance(sent, str):
            return self._answers.get(sent)
        found = self._answers.get(sent.key)
        if found is not None and found.digest in (None, sent.digest):
            return found
        tenant, request_id = ids.unscoped(sent.key)
        return self._answers.get(ids.scoped(tenant, ids.conflicting(request_id, sent.digest)))

    async def _run(self, request: Request) -> None:
        result = await self.script(request)
        if result is not None:
            self.reply(result)

    async def _news(self) -> None:
        self._check()
        if len(self._waiters) >= self._most:
            raise ExchangeFull(self._most)
        news = asyncio.get_running_loop().create_future()
        self._waiters.add(news)
        try:
            await news
        finally:
            self._waiters.discard(news)
        self._check()

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _check(self) -> None:
        if self.closed:
            raise ExchangeClosed


def _conflict(request: Request, digest: str) -> Result:
    assert request.id is not None
    return Result(
        id=ids.conflicting(request.id, digest),
        tenant=request.tenant,
        status="error",
        digest=digest,
        error=Failure(code="id_conflict", message="its id stands for another request already"),
    )
