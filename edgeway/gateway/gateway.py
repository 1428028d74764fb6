"""The gateway's HTTP door: who may call, what is at which path, and how it stops."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence

import msgspec
from starlette.convertors import Convertor, register_url_convertor
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.requests import Request as Http
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from edgeway.errors import EdgewayError
from edgeway.exchange import Exchange
from edgeway.gateway.answers import capability_reply, reply_of
from edgeway.gateway.asking import Asking
from edgeway.gateway.calls import Call, Work, any_method, check_head, correlation, response_of
from edgeway.gateway.capabilities import read_capability_call
from edgeway.gateway.lobby import Lobby
from edgeway.gateway.openapi import document
from edgeway.gateway.page import POLICY, page
from edgeway.gateway.problems import of_refusal, of_schema, refused, unready
from edgeway.gateway.reading import read_request
from edgeway.gateway.requests import Requests, nothing_here
from edgeway.gateway.tenants import Tenants
from edgeway.gateway.uploads import Uploads
from edgeway.gateway.urls import check_urls
from edgeway.versions import version
from schemas.cards import Card
from schemas.errors import SchemaError
from schemas.rules import Rules
from streams import metrics
from streams.claims import NO_OBJECTS, Objects
from streams.settings import Settings
from streams.tracing import Tracer
from workers.errors import where
from workers.http.forms import Reply
from workers.http.origins import is_loopback, may_call
from workers.http.problems import Refused
from workers.library.fetch import Allowed

log = logging.getLogger(__name__)

GONE = 499
"""Counted for callers who left; nobody reads it."""
_SAID = [
    "Location",
    "Retry-After",
    "Preference-Applied",
    "X-Request-Id",
    "traceparent",
    "Allow",
    "WWW-Authenticate",
]
_ASKED = [
    "Authorization",
    "Content-Type",
    "Idempotency-Key",
    "Edgeway-Deadline-Ms",
    "Prefer",
    "Last-Event-ID",
    "X-Request-Id",
    "traceparent",
    "tracestate",
]


class _Any(Convertor[str]):
    """The rest of a path. Starlette's own `path` ends at a line feed, and ids may hold one."""

    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("any", _Any())


class Gateway:
    """Answers calls over `exchange`; `ready` says whether the process takes any, `cards` gives what is known
    of the capabilities that run, for the documents. `now` is a steady clock in s.
    """

    def __init__(
        self,
        exchange: Exchange,
        settings: Settings,
        rules: Rules,
        ready: Callable[[], bool],
        *,
        objects: Objects = NO_OBJECTS,
        cards: Callable[[], Sequence[Card]] = tuple,
        now: Callable[[], float] = time.monotonic,
        tracer: Tracer | None = None,
    ) -> None:
        self._exchange, self._settings, self._ready, self._now = exchange, settings, ready, now
        self._cards = cards
        self._rules = rules
        self._allowed = Allowed(rules.hosts)
        self._stopping = False
        self.tenants = Tenants(rules)
        self.lobby = Lobby(
            settings.gateway_open,
            settings.gateway_bytes,
            lambda key: exchange.known(key) is not None,
            now,
        )
        self._uploads = Uploads(objects, settings.upload_bytes)
        self._tracer, sample = tracer, settings.trace_sample
        self._asking = Asking(
            exchange, self.tenants, rules, trace_sample=sample, tells_spans=tracer is not None, now=now
        )
        self._requests = Requests(exchange, self._asking, self.tenants, self._uploads, self._take)

    def adopt(self, rules: Rules) -> None:
        """Follow `rules` from now on."""
        self._rules = rules
        self._allowed = Allowed(rules.hosts)
        closed = self.tenants.closed
        self.tenants.adopt(rules)
        if closed and not self.tenants.closed:
            log.warning("rules %s hold no token any more: the gateway asks nobody for one now", rules.version)
        self._asking.adopt(rules)

    def routes(self) -> Sequence[BaseRoute]:
        return (
            Route("/", self._home, methods=["GET"]),
            Route("/docs", self._docs, methods=["GET"]),
            Route("/openapi.json", self._document, methods=["GET"]),
            any_method("/route", self._guarded("route", self._route, "POST")),
            any_method("/requests/{rest:any}", self._guarded("requests", self._requests.answer)),
            any_method("/local/{rest:any}", self._guarded("local", self._capability, "POST")),
            any_method("/cloud/{rest:any}", self._guarded("cloud", self._capability, "POST")),
            any_method("/{rest:any}", self._guarded("other", _nothing)),
        )

    def middleware(self) -> Sequence[Middleware]:
        """Lets pages of the origins in the settings call; without any, browsers let none."""
        if not self._settings.cors_origins:
            return ()
        return (
            Middleware(
                CORSMiddleware,
                allow_origins=list(self._settings.cors_origins),
                allow_methods=["GET", "POST", "DELETE"],
                allow_headers=_ASKED,
                expose_headers=_SAID,
                max_age=600,
            ),
        )

    async def drain(self, within_s: float) -> None:
        """Let no more calls in, and wait until those under way are answered, or for so long."""
        self._stopping = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self.lobby.vacant.wait()
        if self.lobby.seats:
            log.warning("%d calls over HTTP were not answered within %.1f s", self.lobby.seats, within_s)

    async def _home(self, _http: Http) -> Response:
        return RedirectResponse("/docs")

    async def _docs(self, _http: Http) -> Response:
        text = page(self._rules, version(), token=self.tenants.closed)
        headers = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff"}
        return HTMLResponse(text, headers=headers)

    async def _document(self, _http: Http) -> Response:
        said = document(
            self._rules,
            version(),
            token=self.tenants.closed,
            cards=self._cards(),
            upload_bytes=self._settings.upload_bytes,
        )
        return JSONResponse(said)

    def _guarded(self, route: str, work: Work, *methods: str) -> Callable[[Http], object]:
        """A handler that lets callers in, has `work` answer them, and tells of what goes wrong."""

        async def handle(http: Http) -> Response:
            began = self._now()
            call: Call | None = None
            reply: Reply | Response
            try:
                check_head(http, methods)
                call = Call(http, self._admitted(http), self.lobby.seat())
                reply = await work(call)
            except Refused as error:
                reply = of_refusal(error, call.id if call else None)
            except ClientDisconnect:
                reply = Reply(GONE, "text/plain", b"")
            except (EdgewayError, Exception) as error:  # noqa: BLE001 - an unknown error may quote the payload
                reply = self._broken(error, call)
            finally:
                if call is not None and not call.seat.handed_over:
                    call.seat.leave()
            return self._told(route, http, call, reply, self._now() - began)

        return handle

    def _told(
        self, route: str, http: Http, call: Call | None, reply: Reply | Response, took_s: float
    ) -> Response:
        headers = dict(call.headers) if call is not None else {}
        if word := correlation(http, call.id if call is not None else None):
            headers["X-Request-Id"] = word
        if self._stopping:
            headers["Connection"] = "close"
        if isinstance(reply, Reply):
            reply = response_of(reply, headers)
        else:
            reply.headers.update(headers)
        metrics.GATEWAY_CALLS.labels(route, str(reply.status_code)).inc()
        metrics.GATEWAY_S.labels(route).observe(took_s)
        if self._tracer is not None and call is not None and call.trace is not None:
            self._tracer.take([call.trace.span(route, reply.status_code, time.time() * 1000.0, took_s)])
        return reply

    def _broken(self, error: Exception, call: Call | None) -> Reply:
        """The response to what the exchange refused, or nobody foresaw."""
        request_id = call.id if call is not None else None
        if isinstance(error, SchemaError):
            return of_refusal(of_schema(error), request_id)
        if isinstance(error, EdgewayError):
            log.warning("a call could not be sent on: %s", str(error).partition("\n")[0])
            metrics.GATEWAY_SHED.labels("kafka").inc()
            detail = "Kafka is away, or has not acknowledged the request: send it again with the same id"
            return of_refusal(unready(detail), request_id)
        log.error("a call over HTTP broke: %s at %s", type(error).__name__, where(error))
        return of_refusal(refused("internal", "the gateway failed; see its log"), request_id)

    def _admitted(self, http: Http) -> str | None:
        """The tenant of who calls, if tokens say so.

        Raises:
            Refused: who may not call, and everybody while the gateway is not ready or stops.
        """
        origin, host = http.headers.get("origin"), http.headers.get("host", "")
        here_alone = not self.tenants.closed and is_loopback(self._settings.host)
        if (
            origin is not None
            and not {origin, "*"} & set(self._settings.cors_origins)
            and not may_call(origin, host, here_alone=here_alone)
        ):
            detail = "pages of other origins may not call; cors_origins in the settings lists those that may"
            raise Refused("invalid_request", detail, status=403, title="Another origin")
        caller = self.tenants.caller(http.headers.get("authorization", ""))
        if self._stopping:
            raise unready("the gateway stops; ask another replica", close=True)
        if not self._ready():
            raise unready("the gateway is not ready: it starts, or Kafka is away")
        return caller

    async def _route(self, call: Call) -> Reply | Response:
        if call.caller is not None:
            self._take(call.caller)
        asked = await read_request(call.http, call.seat, self._uploads, call.caller)
        tenant = self.tenants.require(call.caller, asked.request.tenant)
        request = msgspec.structs.replace(asked.request, tenant=tenant)
        call.id = request.id
        if call.caller is None:
            self._take(tenant)
        check_urls(request.inputs, self._allowed)
        return await self._asking.ask(call, request, asked.fmt, lambda result: reply_of(result, asked.wire))

    async def _capability(self, call: Call) -> Reply | Response:
        self._take(call.caller)
        asked = await read_capability_call(call.http, call.seat, self._rules.capabilities)
        request = msgspec.structs.replace(asked.request, tenant=call.caller)
        check_urls(request.inputs, self._allowed)
        name = request.task or ""
        return await self._asking.ask(
            call, request, asked.fmt, lambda result: capability_reply(result, name, asked.wire)
        )

    def _take(self, tenant: str | None) -> None:
        try:
            self.tenants.take(tenant, int(self._now() * 1000))
        except Refused:
            metrics.GATEWAY_SHED.labels("rate").inc()
            raise


async def _nothing(call: Call) -> Reply:
    raise nothing_here()
