"""Reading what a client sends, and noticing that it has gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from starlette.requests import ClientDisconnect, Request

from workers.http.problems import Refused

T = TypeVar("T")


class Held(Protocol):
    """Counts the bytes of one call's body, and refuses those for which there is no room."""

    bytes: int

    def add(self, size: int) -> None: ...


async def read_body(
    request: Request, held: Held, *, most: int, within_s: float, too_large: Callable[[], Refused]
) -> bytes:
    """The body, within its bounds of size and time.

    Raises:
        Refused: it is too large or too slow.
    """
    chunks: list[bytes] = []

    def take(chunk: bytes) -> None:
        chunks.append(chunk)

    await each_chunk(request, held, take, most=most, within_s=within_s, too_large=too_large)
    return b"".join(chunks)


async def each_chunk(
    request: Request,
    held: Held,
    take: Callable[[bytes], None],
    *,
    most: int,
    within_s: float,
    too_large: Callable[[], Refused],
) -> None:
    """Give the body to `take` as it comes, within its bounds of size and time.

    Raises:
        Refused: it is too large or too slow; and what `take` raises.
    """
    try:
        async with asyncio.timeout(within_s):
            async for chunk in request.stream():
                held.add(len(chunk))
                if held.bytes > most:
                    raise too_large()
                take(chunk)
    except TimeoutError:
        detail = f"the body did not arrive within {within_s:.0f} s"
        close = (("Connection", "close"),)
        raise Refused("invalid_request", detail, status=408, title="Too slow", headers=close) from None


async def unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """What `work` gives; it is cancelled once the client has gone.

    Raises:
        ClientDisconnect: it has.
    """
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientDisconnect
    finally:
        task.cancel()
        gone.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        continue
