"""Server-sent events: what happens to a request, as it happens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from edgeway.errors import EdgewayError
from edgeway.exchange import Event

log = logging.getLogger(__name__)

MEDIA_TYPE = "text/event-stream"
HEARTBEAT_S = 15.0
"""Between comments on a stream of which nothing else is heard: proxies cut what is silent."""


def record(event: Event, number: int) -> bytes:
    """One event as it is written. Its id begins with its time, from which a reader can go on."""
    data = msgspec.json.encode(event.data)
    return b"id: %d-%d\nevent: %s\ndata: %s\n\n" % (event.at, number, event.kind.encode(), data)


def time_of(last_event_id: str | None) -> int | None:
    """The time of the last event that a reader had, from its Last-Event-ID; None where it had none."""
    text = (last_event_id or "").partition("-")[0]
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


class EventStream(Response):
    """Writes `events` until the last one, or until the client goes. `over` is called in any case.

    Events before `after` (ms) were read before, and are left out; the result never is.
    """

    media_type = MEDIA_TYPE

    def __init__(
        self,
        events: AsyncIterator[Event],
        over: Callable[[], None],
        headers: dict[str, str],
        *,
        after: int | None = None,
    ) -> None:
        self._events, self._over, self._after = events, over, after
        more = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "X-Content-Type-Options": "nosniff"}
        self.status_code = 200
        self.background = None
        self.init_headers({**headers, **more})
        # `init_headers` counts the bytes of a body, and this one has no end yet.
        self.raw_headers = [pair for pair in self.raw_headers if pair[0] != b"content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        writing = asyncio.create_task(self._write(send), name="server-sent events")
        gone = asyncio.create_task(_gone(receive), name="the reader of events")
        try:
            await asyncio.wait({writing, gone}, return_when=asyncio.FIRST_COMPLETED)
            if writing.done():
                writing.result()
        finally:
            writing.cancel()
            gone.cancel()
            await asyncio.gather(writing, gone, return_exceptions=True)
            self._over()

    async def _write(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with aclosing(_pieces(self._events, self._after)) as pieces:
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _pieces(events: AsyncIterator[Event], after: int | None) -> AsyncGenerator[bytes, None]:
    """What is written: events, and comments where none come."""
    number = 0
    upcoming: asyncio.Task[Event | None] | None = None
    try:
        yield b": edgeway\n\n"
        while True:
            upcoming = upcoming or asyncio.create_task(_next(events), name="next event")
            await asyncio.wait({upcoming}, timeout=HEARTBEAT_S)
            if not upcoming.done():
                yield b":\n\n"
                continue
            try:
                event, upcoming = upcoming.result(), None
            except EdgewayError as error:
                # What began as a stream can no longer become a problem; its reader asks for the answer then.
                log.warning("a stream of events ends early: %s", str(error).partition("\n")[0])
                return
            if event is None:
                return
            number += 1
            if after is None or event.at >= after or event.kind == "result":
                yield record(event, number)
    finally:
        if upcoming is not None:
            upcoming.cancel()
            await asyncio.gather(upcoming, return_exceptions=True)
        if isinstance(events, AsyncGenerator):
            await events.aclose()


async def _next(events: AsyncIterator[Event]) -> Event | None:
    return await anext(events, None)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
