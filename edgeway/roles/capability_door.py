"""Capabilities over HTTP: `POST /local/nlp/summarize`, /openapi.json and /docs."""

from __future__ import annotations

import hmac
import logging
import time
import uuid
from collections.abc import Callable, Coroutine, Sequence
from hashlib import sha256
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from edgeway.roles.bodies import read_body, unless_gone
from edgeway.roles.underway import Room, Underway
from edgeway.versions import version
from schemas.ids import subtask_id
from schemas.limits import MAX_RECORD_BYTES
from schemas.messages import Partial
from streams import metrics
from streams.registry.pace import Pace
from streams.settings import Settings
from workers.desk import Closed, Desk, Full
from workers.errors import where
from workers.http.answers import reply_of
from workers.http.calls import check_encoding, check_length, kind_of, read_call, too_large
from workers.http.forms import Call, Reply
from workers.http.openapi import document
from workers.http.origins import is_loopback, may_call
from workers.http.page import POLICY, page
from workers.http.paths import Name, found, full
from workers.http.problems import Refused, of_refusal

log = logging.getLogger(__name__)

BODY_S = 10.0
"""A body may take so long to arrive."""
ALL = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


class CapabilityDoor:
    """Answers calls at `desk`; `ready` says whether the process takes any. `now_ms` is a steady clock."""

    def __init__(
        self,
        desk: Desk,
        settings: Settings,
        ready: Callable[[], bool],
        now_ms: Callable[[], float] = lambda: time.monotonic() * 1000.0,
    ) -> None:
        self._desk = desk
        self._ready = ready
        self._now_ms = now_ms
        self._token = settings.http_token.reveal() if settings.http_token else None
        self._here_alone = self._token is None and is_loopback(settings.host)
        self._room = Room(settings.http_requests, settings.window_bytes)
        self._underway = Underway()
        self._paces: dict[Name, Pace] = {}

    @property
    def calls(self) -> int:
        """Calls under way."""
        return self._room.calls

    def routes(self) -> Sequence[BaseRoute]:
        return (
            Route("/", self._home, methods=["GET"]),
            Route("/docs", self._docs, methods=["GET"]),
            Route("/openapi.json", self._document, methods=["GET"]),
            Route("/{path:path}", self._call, methods=ALL),
        )

    async def _home(self, _request: Request) -> Response:
        return RedirectResponse("/docs")

    async def _docs(self, _request: Request) -> Response:
        text = page(self._desk.cards(), version(), token=self._token is not None)
        headers = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff"}
        return HTMLResponse(text, headers=headers)

    async def _document(self, _request: Request) -> Response:
        return JSONResponse(document(self._desk.cards(), version(), token=self._token is not None))

    async def _call(self, request: Request) -> Response:
        began = time.monotonic()
        name: Name | None = None
        key = uuid.uuid4().hex
        try:
            name = self._named(request)
            reply = await self._reply(request, name, key, began)
        except Refused as error:
            reply = of_refusal(error, key, None if name is None else full(name).strip("/"))
        except ClientDisconnect:
            reply = Reply(499, "text/plain", b"")  # nobody reads it
        except Exception as error:  # noqa: BLE001 - the text of an unknown error may quote the payload
            log.error("a call over HTTP broke: %s at %s", type(error).__name__, where(error))
            reply = of_refusal(Refused("internal", "the worker failed; see its log"), key)
        side, capability = name or ("", "")
        metrics.HTTP_CALLS.labels(capability, side, str(reply.status)).inc()
        if name is not None:
            metrics.HTTP_S.labels(capability, side).observe(time.monotonic() - began)
        return Response(reply.body, reply.status, dict(reply.headers), reply.media_type)

    def _named(self, request: Request) -> Name:
        name = found(request.url.path, self._desk.names())
        if request.method != "POST":
            detail = f"{full(name)} takes POST"
            allow = (("Allow", "POST"),)
            raise Refused("invalid_request", detail, status=405, title="Wrong method", headers=allow)
        return name

    async def _reply(self, request: Request, name: Name, key: str, began: float) -> Reply:
        self._admit(request)
        kind = kind_of(request.headers.get("content-type"))
        check_length(request.headers.get("content-length"))
        check_encoding(request.headers.get("content-encoding"))
        with self._room.call() as held:
            body = await read_body(request, held, most=MAX_RECORD_BYTES, within_s=BODY_S, too_large=too_large)
            call = read_call(kind, body, request.headers)
            self._take_pace(name)
            if call.id is None:
                asked = self._ask(name, key, call, began)
                partial = await unless_gone(request, asked)
            else:
                key = call.id

                def ask() -> Coroutine[Any, Any, Partial]:
                    return self._ask(name, key, call, began)

                shared = self._underway.answer((name, key), call.digest, ask)
                partial = await unless_gone(request, shared)
        took_ms = (time.monotonic() - began) * 1000.0
        return reply_of(partial, key, full(name).strip("/"), call.wire, took_ms)

    def _admit(self, request: Request) -> None:
        """Refuse who may not call, and everybody while the process is not ready."""
        origin = request.headers.get("origin")
        host = request.headers.get("host", "")
        if origin is not None and not may_call(origin, host, here_alone=self._here_alone):
            raise Refused("invalid_request", "pages of other origins may not call", status=403, title="No")
        if self._token is not None and not _same(request.headers.get("authorization", ""), self._token):
            challenge = (("WWW-Authenticate", "Bearer"),)
            detail = "send the token as Authorization: Bearer TOKEN"
            raise Refused("invalid_request", detail, status=401, title="No valid token", headers=challenge)
        if not self._ready():
            raise _unready("the worker is not ready: it loads its models, or stops")

    def _take_pace(self, name: Name) -> None:
        rate = next(c.max_qps for c in self._desk.cards() if (c.side, c.capability) == name)
        if rate is None:
            return
        pace, now = self._paces.setdefault(name, Pace(rate)), int(self._now_ms())
        pace.rate = rate
        if not pace.has_room(now):
            wait = ((pace.next_room(now) or now + 1000) - now) / 1000.0
            detail = f"{full(name)} takes {rate:g} calls a second"
            raise Refused("overloaded", detail, retry_after_s=wait, title="Too fast")
        pace.take(now)

    async def _ask(self, name: Name, key: str, call: Call, began: float) -> Partial:
        side, capability = name
        left_ms = call.deadline_ms - int((time.monotonic() - began) * 1000.0)
        try:
            return await self._desk.ask(
                side,
                capability,
                call.row,
                # Not the id of any request from Kafka: what is set aside for that is not for this call.
                subtask=subtask_id(f"http:{key}", capability.replace("/", "."), side, 0),
                size=call.size,
                deadline_ms=max(1, left_ms),
                max_batch=call.max_batch,
                traceparent=call.traceparent,
            )
        except Full as error:
            raise Refused(
                "overloaded", str(error), retry_after_s=error.retry_after_s, title="The queue is full"
            ) from error
        except Closed as error:
            raise _unready(str(error)) from error


def _unready(detail: str) -> Refused:
    return Refused("overloaded", detail, status=503, title="Not ready", retry_after_s=1.0)


def _same(header: str, token: str) -> bool:
    scheme, _, given = header.partition(" ")
    # Headers are bytes, which are read as Latin-1; a token is text, and clients send it as UTF-8.
    raw = (token.strip().encode("utf-8", "replace"), given.strip().encode("latin-1", "replace"))
    # Of equal length, so that neither the time nor the length tells of the token.
    ours, theirs = (sha256(text).digest() for text in raw)
    return hmac.compare_digest(ours, theirs) and scheme.lower() == "bearer"
