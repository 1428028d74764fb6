"""The events of one request for one listener, from its acceptance to its result."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec

from edgeway.exchange.answers import Answers, Wanted
from edgeway.exchange.listening import Listener, Listeners
from edgeway.exchange.ports import Event, Sent
from edgeway.exchange.shadow import accepted
from schemas import ids
from schemas.messages import MAX_DEADLINE_MS, Result
from streams.delivery import Clock

LOOK_BACK_MS = 60_000
SLACK_MS = 1000
"""How far our estimate of the broker's clock may be off."""
HOLD_S = 0.3
HOLD_UNPLANNED_S = 1.0
"""A result waits so long for what led to it, which another connection reads."""
GRACE_S = 30.0
UNKNOWN_S = 60.0
"""How long one listens to what nobody has planned and was not sent from here."""


class Progress:
    """Joins what `listeners` read and the result that `answers` has."""

    def __init__(self, listeners: Listeners, answers: Answers, clock: Clock) -> None:
        self._listeners = listeners
        self._answers = answers
        self._clock = clock

    async def follow(
        self, sent: Sent | str, since_ms: int | None, sent_at: int | None, timeout_s: float | None
    ) -> AsyncIterator[Event]:
        """See Exchange.events. `sent_at` is when the request was sent through here, in ms."""
        key = sent if isinstance(sent, str) else sent.key
        wanted = Wanted(sent)
        known = self._answers.find(wanted)
        if known is not None and sent_at is None and since_ms is None:
            # Where its join stood is not known, and may be long ago.
            yield _result(known, self._clock.now())
            return
        if since_ms is None:
            since_ms = self._clock.now() - LOOK_BACK_MS if sent_at is None else sent_at - SLACK_MS
        listener = Listener(key, since_ms)
        self._listeners.add(listener)
        try:
            future = self._answers.wait(wanted)
            try:
                if known is not None:
                    future.set_result(known)
                future.add_done_callback(lambda _: listener.news.set())
                if sent_at is not None:
                    yield accepted(key, sent_at)
                limit_s = MAX_DEADLINE_MS / 1000 + GRACE_S if sent_at is not None else UNKNOWN_S
                async for event in self._merged(listener, future, timeout_s, limit_s):
                    if event.kind == "planned" and sent_at is None:
                        sent_at = event.at
                        yield accepted(key, event.at)
                    if event.kind == "result":
                        # A conflict comes under a derived id: who asked knows its own.
                        event = event._replace(data=event.data | {"id": ids.unscoped(key)[1]})
                    yield event
            finally:
                self._answers.leave(wanted)
        finally:
            self._listeners.remove(listener)

    async def _merged(
        self, listener: Listener, future: asyncio.Future[Result], timeout_s: float | None, limit_s: float
    ) -> AsyncIterator[Event]:
        """The listener's events, and its result as the last one."""
        loop = asyncio.get_running_loop()
        until = loop.time() + (limit_s if timeout_s is None else timeout_s)
        hold: float | None = None
        while True:
            listener.news.clear()
            while (event := listener.pop()) is not None:
                yield event
            now = loop.time()
            shadow = listener.shadow
            if future.done():
                result = future.result()
                if hold is None:
                    hold = now + (HOLD_S if shadow.is_planned else HOLD_UNPLANNED_S)
                if shadow.is_over or now >= hold:
                    yield _result(result, self._clock.now())
                    return
            elif timeout_s is None and shadow.deadline is not None:
                until = now + GRACE_S + (shadow.deadline - self._clock.now()) / 1000
            if now >= until:
                return
            try:
                async with asyncio.timeout_at(until if hold is None else min(until, hold)):
                    await listener.news.wait()
            except TimeoutError:
                continue


def _result(result: Result, at: int) -> Event:
    return Event("result", at, msgspec.to_builtins(result, str_keys=True))
