"""A worker's HTTP door in this process: a real server on a free port, real clients."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from edgeway.roles.capability_door import CapabilityDoor
from edgeway.roles.door import Door, bound, door
from streams.delivery import BrokerClock
from streams.settings import Settings
from workers.backends import Backend
from workers.backends.function import backends_of
from workers.desk import Desk
from workers.service import Limits
from workers.worker import Worker


@dataclass
class Served:
    """A door that is open; `ready` may be changed."""

    port: int
    worker: Worker
    door: CapabilityDoor
    client: httpx.AsyncClient
    ready: bool = True

    async def call(self, path: str, body: Any, **options: Any) -> httpx.Response:
        """POST `body` as JSON."""
        return await self.client.post(path, json=body, **options)


@asynccontextmanager
async def served(
    *offered: Backend | Callable[..., Any], settings: Settings | None = None, **limits: Any
) -> AsyncIterator[Served]:
    """One worker that serves backends or functions, and a client of it."""
    backends = [b for each in offered for b in (backends_of(each) if callable(each) else (each,))]
    clock = BrokerClock()
    worker = Worker(backends, name="w1", clock=clock, limits=Limits(**limits))
    await worker.start()
    own = CapabilityDoor(Desk([worker], clock), settings or Settings(), lambda: found.ready)
    listener = bound("127.0.0.1", 0)
    port = int(listener.getsockname()[1])
    app = door(lambda: {"ok": True, "ready": found.ready}, metrics=True, routes=own.routes())
    server = Door(app, listener)
    await server.start()
    pool = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30, limits=pool) as client:
        found = Served(port, worker, own, client)
        try:
            yield found
        finally:
            await worker.stop(5.0)
            await server.stop()
