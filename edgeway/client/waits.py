"""Waits that several callers share: the same request twice at once is sent once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any

from edgeway.client.errors import ClientClosed, RequestTimeout
from schemas.messages import Result

OnSent = Callable[[], None]
Begin = Callable[[OnSent], Coroutine[Any, Any, Result]]


class Wait:
    """A task that gets one answer. It is cancelled once nobody holds it any more."""

    def __init__(self, request_id: str, begin: Begin) -> None:
        self.id = request_id
        self.sent = asyncio.get_running_loop().create_future()
        self.task = asyncio.create_task(begin(self._on_sent), name=f"edgeway-wait-{request_id}")
        self._holders = 0

    def _on_sent(self) -> None:
        if not self.sent.done():
            self.sent.set_result(None)

    def hold(self) -> None:
        """Keep it going; `release` must follow."""
        self._holders += 1

    def release(self) -> None:
        """Let it end where nobody else holds it."""
        self._holders -= 1
        if self._holders == 0:
            self.task.cancel()

    async def acknowledged(self, timeout_s: float) -> None:
        """Return once the request is handed over; for one who holds. Raises as `within`."""
        ends = (self.sent, self.task)
        done, _ = await asyncio.wait(ends, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if not self.sent.done():
            self._result(bool(done), timeout_s)

    async def within(self, timeout_s: float) -> Result:
        """The answer.

        Raises:
            RequestTimeout: none in `timeout_s`; the wait goes on for its other holders.
            ClientClosed: the client was closed meanwhile.
        """
        self.hold()
        try:
            done, _ = await asyncio.wait((self.task,), timeout=timeout_s)
        finally:
            self.release()
        return self._result(bool(done), timeout_s)

    def _result(self, done: bool, timeout_s: float) -> Result:
        if not done:
            raise RequestTimeout(self.id, timeout_s)
        if self.task.cancelled():
            raise ClientClosed(
                f"request {self.id}: the client was closed, or the wait given up, before its answer came"
            )
        return self.task.result()


class Waits:
    """The waits of one client, by key; it owns their tasks."""

    def __init__(self) -> None:
        self._open: dict[Hashable, Wait] = {}

    def __len__(self) -> int:
        return len(self._open)

    def join(self, key: Hashable, request_id: str, begin: Begin) -> Wait:
        """The wait under `key`, begun where there is none."""
        found = self._open.get(key)
        # One that was cancelled in this turn of the loop is not done yet.
        if found is not None and not found.task.done() and not found.task.cancelling():
            return found
        wait = self._open[key] = Wait(request_id, begin)
        wait.task.add_done_callback(lambda task: self._ended(key, task))
        return wait

    def _ended(self, key: Hashable, task: asyncio.Task[Result]) -> None:
        if not task.cancelled():
            # Whoever waits gets it from the task; one that nobody waits for must not complain.
            task.exception()
        found = self._open.get(key)
        if found is not None and found.task is task:
            del self._open[key]

    async def close(self) -> None:
        """End all waits and see them end."""
        tasks = [wait.task for wait in self._open.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
