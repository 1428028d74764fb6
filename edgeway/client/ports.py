"""What a client stands on: one way to Edgeway, over Kafka or over HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Protocol

from edgeway.exchange.ports import Event
from schemas.messages import Request, Result


class Transport(Protocol):
    """Requests always have an id here. No wait has an end of its own: the client cancels what it waits for.

    Each sends again, under the same id, where the outcome of a try is unknown.
    """

    async def open(self) -> None:
        """Connect. Raises what is in the way."""

    async def close(self) -> None:
        """Let go of all connections; never raises."""

    async def route(
        self, request: Request, *, chosen: bool, on_sent: Callable[[], None], early: bool
    ) -> Result:
        """Hand over, call `on_sent` once that is acknowledged, and wait for the answer. `chosen`: the caller
        gave the id, so that it may be answered already. `early`: the acknowledgement is awaited by itself.

        Raises:
            NotSent: every try ended without a word.
            GatewayRefused: HTTP only.
        """

    async def result(self, request_id: str, tenant: str | None) -> Result:
        """The answer to what was sent before, here or elsewhere."""

    def events(self, request: Request, *, chosen: bool) -> AsyncGenerator[Event, None]:
        """Hand over and tell what happens; the last one is `result`."""

    async def cancel(self, request_id: str, tenant: str | None) -> None:
        """Say that the answer is no longer wanted."""
