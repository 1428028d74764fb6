"""The events of a request whose answer may be older than who follows it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

import msgspec

from edgeway.exchange.ports import Event
from schemas.messages import Result

HOLD_S = 0.3


async def until_late(
    events: AsyncIterator[Event], late: asyncio.Future[Result | None] | None
) -> AsyncGenerator[Event, None]:
    """`events`, ended by what `late` finds where they have no result by then. Closes both."""
    step: asyncio.Future[Event] | None = None
    found: Result | None = None
    at = 0
    try:
        while True:
            step = asyncio.ensure_future(_next(events))
            if late is not None and found is None:
                await asyncio.wait((step, late), return_when=asyncio.FIRST_COMPLETED)
                if late.done():
                    found, late = late.result(), None
            if found is not None:
                # What led to it is read over another connection, and may be on its way.
                await asyncio.wait((step,), timeout=HOLD_S)
                if not step.done():
                    yield Event("result", at, msgspec.to_builtins(found, str_keys=True))
                    return
            try:
                event = await step
            except StopAsyncIteration:
                return
            at = event.at
            yield event
    finally:
        left = [task for task in (step, late) if task is not None]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        if isinstance(events, AsyncGenerator):
            await events.aclose()


async def _next(events: AsyncIterator[Event]) -> Event:
    return await anext(events)
