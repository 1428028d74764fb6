"""The HTTP door of a role: /healthz, /readyz and /metrics."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from edgeway.errors import PortTaken


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Raises:
        PortTaken: another process has the port.
    """
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise PortTaken(host, port) from error
    return listener


def door(health: Callable[[], dict[str, Any]], *, metrics: bool) -> Starlette:
    """The application. `health` gives `ok` and `ready` and what else there is to show."""

    async def healthz(_request: Request) -> Response:
        shown = health()
        return JSONResponse(shown, 200 if shown["ok"] else 503)

    async def readyz(_request: Request) -> Response:
        ready = bool(health()["ready"])
        return JSONResponse({"ready": ready}, 200 if ready else 503)

    async def exposition(_request: Request) -> Response:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    routes = [Route("/healthz", healthz), Route("/readyz", readyz)]
    return Starlette(routes=[*routes, Route("/metrics", exposition)] if metrics else routes)


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # The role handles signals: uvicorn would stop the door and leave the role.
        yield


class Door:
    """Serves an application on a bound socket until stopped."""

    def __init__(self, app: Starlette, listener: socket.socket) -> None:
        self._server = _Server(uvicorn.Config(app, log_level="warning", lifespan="off", access_log=False))
        self._listener = listener
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._server.serve(sockets=[self._listener]))

    async def stop(self) -> None:
        self._server.should_exit = True
        if self._task is not None:
            await asyncio.wait((self._task,), timeout=5.0)
            self._task.cancel()
        self._listener.close()
