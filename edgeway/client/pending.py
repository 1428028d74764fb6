"""A request that was handed over and whose answer is still to come."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any

from edgeway.client.waits import Wait
from schemas.messages import Result


class Pending:
    """`await pending` is `await pending.result()`. Its answer is waited for from the start, read or not."""

    def __init__(self, wait: Wait, timeout_s: float, cancel: Callable[[], Awaitable[None]]) -> None:
        self.id = wait.id
        self._wait = wait
        self._timeout_s = timeout_s
        self._cancel = cancel

    def __repr__(self) -> str:
        return f"<Pending {self.id}: {'done' if self.done() else 'waiting'}>"

    def __await__(self) -> Generator[Any, None, Result]:
        return self.result().__await__()

    def done(self) -> bool:
        """Whether the answer is there, or the wait has ended otherwise."""
        return self._wait.task.done()

    async def result(self, timeout_s: float | None = None) -> Result:
        """The answer; without `timeout_s` for as long as `submit` was told to wait.

        Raises:
            RequestTimeout: not within the time; ask again whenever you like.
            ClientClosed: the client was closed meanwhile.
        """
        return await self._wait.within(self._timeout_s if timeout_s is None else timeout_s)

    async def cancel(self) -> None:
        """Say that the answer is no longer wanted: it comes all the same, as the error `cancelled` or as
        what was answered before.
        """
        await self._cancel()
