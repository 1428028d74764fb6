"""A gateway in this process over an exchange in memory: called directly, or on a real port."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from edgeway.gateway.gateway import Gateway
from edgeway.roles.door import Door, bound, door
from schemas.rules import parse_rules
from streams.claims import NO_OBJECTS, Objects
from streams.settings import Settings
from tests.helpers.exchange import MemoryExchange, Script, echo

RULES: dict[str, Any] = {
    "tasks": {
        "summarize": {"capability": "nlp/summarize"},
        "image_captioning": {"capability": "vision/caption"},
        "voice": {"capability": "audio/intent", "deadline_ms": 2000},
    },
    "hosts": ["images.example.com", "*.cdn.example.com", "127.0.0.1:8099"],
    "builtin": False,
}


@dataclass
class Served:
    """A gateway, its exchange, and a client of it; `ready` may be changed."""

    gateway: Gateway
    exchange: MemoryExchange
    client: httpx.AsyncClient
    port: int = 0
    ready: bool = True
    door: Door | None = None

    async def route(self, body: Any, **options: Any) -> httpx.Response:
        """POST /route with `body` as JSON."""
        return await self.client.post("/route", json=body, **options)


@asynccontextmanager
async def gateway(
    script: Script = echo,
    *,
    rules: dict[str, Any] | None = None,
    settings: Settings | None = None,
    objects: Objects = NO_OBJECTS,
    socket: bool = False,
    connections: int | None = None,
    **options: Any,
) -> AsyncIterator[Served]:
    """A gateway whose requests `script` answers; with `socket` on a free port."""
    known = parse_rules(json.dumps({**RULES, **(rules or {})}).encode())
    async with MemoryExchange(script) as exchange:
        have = settings or Settings()
        own = Gateway(exchange, have, known, lambda: found.ready, objects=objects, **options)
        app = door(
            lambda: {"ok": True, "ready": found.ready},
            metrics=True,
            routes=own.routes(),
            middleware=own.middleware(),
        )
        if not socket:
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://gateway", timeout=10
            ) as client:
                found = Served(own, exchange, client)
                yield found
            return
        listener = bound("127.0.0.1", 0)
        port = int(listener.getsockname()[1])
        server = Door(app, listener, connections)
        await server.start()
        pool = httpx.Limits(max_connections=None)
        url = f"http://127.0.0.1:{port}"
        try:
            async with httpx.AsyncClient(base_url=url, timeout=30, limits=pool) as client:
                found = Served(own, exchange, client, port, door=server)
                yield found
        finally:
            await server.stop()
