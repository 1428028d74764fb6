"""The clients for code without an event loop, or with one that must not be waited in (Jupyter)."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, Unpack

from edgeway.client.asking import Asked, AskedAlike, IdOf, named
from edgeway.client.caller import CONCURRENCY, RESULT_S, Caller, Item
from edgeway.client.client import Client, HttpClient
from edgeway.client.errors import ClientClosed
from edgeway.client.loop_thread import STOP_S, LoopThread, close_in_time
from edgeway.client.mapping import total_of
from edgeway.client.pending import Pending
from edgeway.exchange.ports import Event
from edgeway.progress import bar
from schemas.messages import Result


class SyncPending:
    """A request that was handed over and whose answer is still to come."""

    def __init__(self, pending: Pending, thread: LoopThread) -> None:
        self.id = pending.id
        self._pending = pending
        self._thread = thread

    def __repr__(self) -> str:
        return repr(self._pending)

    def done(self) -> bool:
        """Whether the answer is there, or the wait has ended otherwise."""
        return self._pending.done()

    def result(self, timeout_s: float | None = None) -> Result:
        """The answer; as Pending.result."""
        return self._thread.call(self._pending.result(timeout_s))

    def cancel(self) -> None:
        """Say that the answer is no longer wanted; as Pending.cancel."""
        self._thread.call(self._pending.cancel())


class SyncCaller:
    """A client whose methods wait. May be used from several threads at once; connects at the first call.

    Its loop runs in a thread of its own, so it works inside a running loop too, and blocks it meanwhile. It
    closes at the end of a `with`, by `close()`, when nothing refers to it any more, or at the end of the
    process. After a fork it goes on in the parent alone; a child makes its own.
    """

    def __init__(self, make: Callable[[], Caller]) -> None:
        # Made here, so that what is wrong with a URL is told here.
        self._client = make()
        self._thread = LoopThread("edgeway-client")
        self._streams: set[AsyncIterator[Event]] = set()
        close_in_time(self, self._thread, self._client.close)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} over {self._client!r}>"

    def open(self) -> Self:
        """Connect now instead of at the first call. Raises as `Client.open`."""
        self._thread.call(self._client.open())
        return self

    def close(self) -> None:
        """End all waits with ClientClosed, let go of the connections and end the thread."""
        if self._thread.is_begun:
            with suppress(TimeoutError):
                self._thread.call(_close_all(self._client, self._streams), STOP_S)
        self._thread.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def route(
        self, task: str | None = None, *, timeout_s: float | None = None, **asked: Unpack[Asked]
    ) -> Result:
        """Send one request and wait for its answer; as Client.route."""
        return self._thread.call(self._routed(task, timeout_s, asked))

    def submit(
        self, task: str | None = None, *, timeout_s: float | None = None, **asked: Unpack[Asked]
    ) -> SyncPending:
        """Send one request; returns when it is acknowledged; as Client.submit."""

        async def submit() -> Pending:
            await self._client.open()
            return await self._client.submit(task, timeout_s=timeout_s, **asked)

        return SyncPending(self._thread.call(submit()), self._thread)

    def result(self, id: str, timeout_s: float = RESULT_S, *, tenant: str | None = None) -> Result:  # noqa: A002
        """The answer to a request that was sent before; as Client.result."""

        async def result() -> Result:
            await self._client.open()
            return await self._client.result(id, timeout_s, tenant=tenant)

        return self._thread.call(result())

    def cancel(self, id: str, *, tenant: str | None = None) -> None:  # noqa: A002
        """Say that the answer to `id` is no longer wanted; as Client.cancel."""

        async def cancel() -> None:
            await self._client.open()
            await self._client.cancel(id, tenant=tenant)

        self._thread.call(cancel())

    def stream(
        self, task: str | None = None, *, timeout_s: float | None = None, **asked: Unpack[Asked]
    ) -> Iterator[Event]:
        """Send one request and tell what happens to it; as Client.stream."""
        self.open()
        events = self._client.stream(task, timeout_s=timeout_s, **asked)
        self._streams.add(events)
        try:
            while (event := self._thread.call(_next(events))) is not None:
                yield event
        finally:
            # Where the client was closed before, it has ended the stream itself.
            self._streams.discard(events)
            with suppress(ClientClosed):
                self._thread.call(_close(events))

    def map(
        self,
        inputs: Iterable[Item],
        task: str | None = None,
        *,
        ids: IdOf | None = None,
        concurrency: int = CONCURRENCY,
        ordered: bool = True,
        progress: bool = False,
        timeout_s: float | None = None,
        **asked: Unpack[AskedAlike],
    ) -> Iterator[Result]:
        """One request for each of `inputs`, which are read in the calling thread; as Client.map."""
        if concurrency < 1:
            raise ValueError(f"concurrency {concurrency}: give 1 or more")
        self.open()

        def begin(item: Item) -> Future[Result]:
            return self._thread.submit(self._client.settled(item, task, named(ids, item), timeout_s, asked))

        with bar(task or "map", total_of(inputs), progress) as shown:
            for result in _windowed(iter(inputs), begin, concurrency, ordered):
                shown.advance()
                yield result

    async def _routed(self, task: str | None, timeout_s: float | None, asked: Asked) -> Result:
        await self._client.open()
        return await self._client.route(task, timeout_s=timeout_s, **asked)


class SyncClient(SyncCaller):
    """`Client` for code without an event loop.

    ::

        with edgeway.SyncClient("kafka://localhost:9092") as client:
            result = client.route(task="intent", inputs={"text": "where is my card"})
    """

    def __init__(self, url: str | None = None, **more: Any) -> None:
        """Arguments and errors as `Client`."""
        super().__init__(lambda: Client(url, **more))


class SyncHttpClient(SyncCaller):
    """`HttpClient` for code without an event loop."""

    def __init__(self, url: str, **more: Any) -> None:
        """Arguments and errors as `HttpClient`."""
        super().__init__(lambda: HttpClient(url, **more))


def _windowed(
    inputs: Iterator[Item], begin: Callable[[Item], Future[Result]], concurrency: int, ordered: bool
) -> Iterator[Result]:
    """The results, with no more than `concurrency` inputs read ahead; an error of the inputs comes last."""
    under_way: deque[Future[Result]] = deque()
    trouble: Exception | None = None
    exhausted = False
    try:
        while True:
            while not exhausted and len(under_way) < concurrency:
                try:
                    under_way.append(begin(next(inputs)))
                except StopIteration:
                    exhausted = True
                except Exception as exc:  # noqa: BLE001 - raised below, once the others are given out
                    exhausted, trouble = True, exc
            if not under_way:
                break
            first = under_way[0] if ordered else _completed(under_way)
            result = first.result()
            under_way.remove(first)
            yield result
        if trouble is not None:
            raise trouble
    finally:
        for future in under_way:
            future.cancel()


def _completed(under_way: Iterable[Future[Result]]) -> Future[Result]:
    return next(iter(wait(under_way, return_when=FIRST_COMPLETED).done))


async def _next(events: Any) -> Event | None:
    found: Event | None = await anext(events, None)
    return found


async def _close_all(client: Caller, streams: Iterable[Any]) -> None:
    """Streams first, from the outermost generator on: a loop that ends closes the inner ones at once."""
    for events in list(streams):
        # One that another thread waits in is ended by the client.
        with suppress(RuntimeError):
            await events.aclose()
    await client.close()


async def _close(events: Any) -> None:
    await events.aclose()
