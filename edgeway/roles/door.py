"""The HTTP door of a role: /healthz, /readyz and /metrics, and what else the role has to say."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from edgeway.errors import PortTaken
from edgeway.roles import gauges
from edgeway.roles.guard import KEEP_ALIVE_S, MOST_HEAD_BYTES, guarded
from workers.http.problems import Refused, of_refusal


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


def door(
    health: Callable[[], dict[str, Any]],
    *,
    metrics: bool,
    routes: Sequence[BaseRoute] = (),
    middleware: Sequence[Middleware] = (),
) -> Starlette:
    """The application. `health` gives `ok` and `ready` and what else there is to show; `routes` and
    `middleware` are the role's own.
    """

    async def healthz(_request: Request) -> Response:
        shown = health()
        return JSONResponse(shown, 200 if shown["ok"] else 503)

    async def readyz(_request: Request) -> Response:
        shown = health()
        ready = bool(shown["ready"])
        # What is away elsewhere is told, and makes nothing unready: the rest is served.
        more = {"waits_for": shown["waits_for"]} if shown.get("waits_for") else {}
        return JSONResponse({"ready": ready, **more}, 200 if ready else 503)

    async def exposition(_request: Request) -> Response:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    gauges.begin()
    own: list[BaseRoute] = [Route("/healthz", healthz), Route("/readyz", readyz)]
    own += [Route("/metrics", exposition)] if metrics else []
    told: Any = {HTTPException: _refused, Exception: _failed}
    return Starlette(routes=[*own, *routes], middleware=middleware, exception_handlers=told)


async def _refused(_request: Request, error: HTTPException) -> Response:
    headers = tuple((error.headers or {}).items())
    return _said(
        Refused(
            "invalid_request", error.detail, status=error.status_code, title=error.detail, headers=headers
        )
    )


async def _failed(_request: Request, _error: Exception) -> Response:
    return _said(
        Refused("internal", "the answer could not be written; see the log", title="The request failed")
    )


def _said(refused: Refused) -> Response:
    reply = of_refusal(refused)
    return Response(reply.body, reply.status, dict(reply.headers), reply.media_type)


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # The role handles signals: uvicorn would stop the door and leave the role.
        yield


class Door:
    """Serves an application on a bound socket until stopped, on at most `connections` at once."""

    def __init__(self, app: Starlette, listener: socket.socket, connections: int | None = None) -> None:
        self._server = _Server(
            uvicorn.Config(
                app,
                http=guarded(connections),
                ws="none",
                log_config=None,  # its own goes to stderr as plain text, whatever --log-format says
                log_level="warning",
                lifespan="off",
                access_log=False,
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE_S,
                h11_max_incomplete_event_size=MOST_HEAD_BYTES,
            )
        )
        self._listener = listener
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Returns once it listens."""
        self._task = asyncio.create_task(self._server.serve(sockets=[self._listener]))
        while not self._server.started:
            if self._task.done():
                self._task.result()
                return
            await asyncio.sleep(0.001)

    async def stop(self) -> None:
        self._server.should_exit = True
        if self._task is not None:
            await asyncio.wait((self._task,), timeout=5.0)
            self._task.cancel()
        self._listener.close()
