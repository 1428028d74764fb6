"""Clients on an exchange in memory: over it as over Kafka, and through a real gateway on a real port."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from edgeway.client.caller import Caller
from edgeway.client.over_http import OverHttp, http_client
from edgeway.client.over_kafka import OverKafka
from edgeway.client.retrying import RealClock, Retries
from edgeway.gateway.gateway import Gateway
from edgeway.roles.door import Door, bound, door
from schemas.messages import Failure, Request, Result
from schemas.rules import parse_rules
from streams.settings import Secret, Settings
from tests.helpers.exchange import MemoryExchange

RETRIES = Retries(tries=4, first_s=0.02, most_s=2.0)


@dataclass
class FakeClock(RealClock):
    """Real time, and pauses that are noted instead of waited for."""

    pauses: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0)


@asynccontextmanager
async def over_kafka(exchange: Any, clock: Any = None, **more: Any) -> AsyncIterator[Caller]:
    """A client that takes `exchange` for Kafka."""
    clock = FakeClock() if clock is None else clock
    way = OverKafka(lambda: exchange, RETRIES, lambda: 0.5, clock, fresh_s=0.05)
    async with Caller(way, "memory", clock, **more) as client:
        yield client


@asynccontextmanager
async def served(exchange: Any, rules: bytes = b"{}", port: int = 0, **settings: Any) -> AsyncIterator[int]:
    """A gateway on `exchange`; the port it listens on."""
    gateway = Gateway(exchange, Settings(**settings), parse_rules(rules), lambda: True)
    listener = bound("127.0.0.1", port)
    app = door(lambda: {"ok": True, "ready": True}, metrics=False, routes=gateway.routes())
    server = Door(app, listener)
    await server.start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        await server.stop()


@asynccontextmanager
async def to_port(
    port: int, clock: Any = None, token: str | None = None, **more: Any
) -> AsyncIterator[Caller]:
    """A client of whatever listens at `port`."""
    clock = FakeClock() if clock is None else clock
    base = f"http://127.0.0.1:{port}"
    secret = None if token is None else Secret(token)
    way = OverHttp(lambda: http_client(base, secret, True), RETRIES, lambda: 0.5, clock)
    async with Caller(way, base, clock, **more) as client:
        yield client


@asynccontextmanager
async def over_http(exchange: Any, **more: Any) -> AsyncIterator[Caller]:
    """A client of a gateway on `exchange`."""
    async with exchange, served(exchange) as port, to_port(port, **more) as client:
        yield client


FACES: dict[str, Callable[..., Any]] = {"kafka": over_kafka, "http": over_http}


def failed(request: Request, code: Any, message: str = "it failed") -> Result:
    """An error as the answer to `request`."""
    assert request.id is not None
    return Result(
        id=request.id, tenant=request.tenant, status="error", error=Failure(code=code, message=message)
    )


class LossyExchange(MemoryExchange):
    """Writes what is sent and tells nobody: the first `losses` sends end with an unknown outcome."""

    losses = 0

    async def send(self, request: Request, **more: Any) -> Any:
        sent = await super().send(request, **more)
        if self.losses:
            self.losses -= 1
            from edgeway.errors import SendUnknown

            raise SendUnknown(sent.id, 0.1)
        return sent
