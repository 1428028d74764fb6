"""Calls under way: how many, how large, and who waits for the same answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from schemas.messages import Partial
from streams import metrics
from workers.http.problems import Refused

Ask = Callable[[], Coroutine[Any, Any, Partial]]


@dataclass(slots=True)
class _Shared:
    task: asyncio.Task[Partial]
    digest: bytes
    waiters: int = 0


class Underway:
    """Calls that are being answered, by their keys. Once answered, a call is forgotten."""

    def __init__(self) -> None:
        self._calls: dict[Hashable, _Shared] = {}

    async def answer(self, key: Hashable, digest: bytes, ask: Ask) -> Partial:
        """The answer of `ask`, or of the call under way that has the same key. That ends once nobody waits.

        Raises:
            Refused: another call has the key; and what `ask` raises.
        """
        shared = self._calls.get(key)
        if shared is None:
            shared = self._calls[key] = _Shared(asyncio.create_task(ask(), name="call over HTTP"), digest)
            shared.task.add_done_callback(lambda _task: self._calls.pop(key, None))
        elif shared.digest != digest:
            raise Refused("id_conflict", "another call with this Idempotency-Key is under way")
        shared.waiters += 1
        try:
            return await asyncio.shield(shared.task)
        finally:
            shared.waiters -= 1
            if not shared.waiters and not shared.task.done():
                # Forgotten now: whoever comes next must not wait for what is being cancelled.
                self._calls.pop(key, None)
                shared.task.cancel()


class Room:
    """Bounds on calls under way and on the bytes of their bodies."""

    def __init__(self, calls: int, max_bytes: int) -> None:
        self._most, self._most_bytes = calls, max_bytes
        self.calls = 0
        self.bytes = 0

    @contextmanager
    def call(self) -> Iterator[Held]:
        """One more call, whose body is held until the block ends.

        Raises:
            Refused: 429, there are too many.
        """
        if self.calls >= self._most:
            raise Refused(
                "overloaded", f"{self._most} calls are under way, which is all at once", retry_after_s=1.0
            )
        held = Held(self)
        self.calls += 1
        metrics.HTTP_OPEN.set(self.calls)
        try:
            yield held
        finally:
            self.calls -= 1
            self.bytes -= held.bytes
            metrics.HTTP_OPEN.set(self.calls)

    def add(self, size: int) -> None:
        if self.bytes + size > self._most_bytes:
            raise Refused(
                "overloaded", "the bodies under way take all the memory for them", retry_after_s=1.0
            )
        self.bytes += size


class Held:
    """The bytes of one call's body."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self.bytes = 0

    def add(self, size: int) -> None:
        """`size` more were read.

        Raises:
            Refused: 429, all calls together hold too many.
        """
        self._room.add(size)
        self.bytes += size
