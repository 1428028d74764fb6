"""`/requests/{id}` and what is below it: answers, events, reports and outputs of requests sent before."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import unquote

import msgspec
from starlette.requests import Request as Http
from starlette.responses import Response

from edgeway.exchange import Exchange
from edgeway.gateway.answers import RETRY_S, location, shown, still_open
from edgeway.gateway.asking import GRACE_S, Asking
from edgeway.gateway.calls import Call, check_method
from edgeway.gateway.downloads import Download
from edgeway.gateway.events import time_of
from edgeway.gateway.prefer import preference_of
from edgeway.gateway.problems import refused
from edgeway.gateway.reading import accept
from edgeway.gateway.tenants import Tenants
from edgeway.gateway.uploads import Uploads
from edgeway.roles.bodies import unless_gone
from schemas.bounds import MAX_DEADLINE_MS, TENANT_WORDS, Tenant
from schemas.errors import Malformed
from schemas.ids import check_id, scoped
from schemas.messages import Result
from workers.http.calls import wire_of
from workers.http.forms import JSON, MSGPACK, Reply
from workers.http.problems import Refused

PARTS = ("events", "report", "output")
MOST_AHEAD_MS = MAX_DEADLINE_MS + int(GRACE_S * 1000)
_SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"


class Asked(NamedTuple):
    """Which request a path means. `until` is by when it is answered, as its Location says."""

    id: str
    tenant: str | None
    part: str
    until: int

    @property
    def key(self) -> str:
        return scoped(self.tenant, self.id)


class Requests:
    """Answers for requests that were sent before, through whichever replica. `take` counts a call of a tenant
    that writes, or refuses it.
    """

    def __init__(
        self,
        exchange: Exchange,
        asking: Asking,
        tenants: Tenants,
        uploads: Uploads,
        take: Callable[[str | None], None],
    ) -> None:
        self._exchange, self._asking, self._tenants, self._uploads = exchange, asking, tenants, uploads
        self._take = take

    async def answer(self, call: Call) -> Reply | Response:
        """What is at the path of `call`."""
        asked = self._asked(call)
        call.id = asked.id
        if asked.part:
            check_method(call.http, "GET")
        else:
            check_method(call.http, "GET", "DELETE")
        if call.http.method == "DELETE":
            self._take(asked.tenant)
            return await self._cancel(asked)
        if asked.part == "events":
            return self._events(call, asked)
        result = await self._result(call, asked)
        if result is None:
            return still_open(asked.id, location(asked.id, asked.tenant, asked.until or None, asked.part))
        if asked.part == "report":
            # A chart takes up to half a second.
            return await asyncio.to_thread(_report, result, accept(call.http))
        if asked.part == "output":
            return await self._output(call, result)
        return shown(result, wire_of("json", accept(call.http)))

    def _asked(self, call: Call) -> Asked:
        """
        Raises:
            Refused: 404, it names no request; 403, one of another tenant; 400, what the query says is wrong.
        """
        words = _segments(call.http)
        if len(words) not in (2, 3) or (len(words) == 3 and words[2] not in PARTS):
            raise nothing_here()
        try:
            request_id = check_id(words[1], "the id")
        except Malformed as error:
            raise refused("invalid_request", str(error)) from None
        query = call.http.query_params
        named = query.get("tenant")
        if named is not None:
            try:
                msgspec.convert(named, Tenant)
            except msgspec.ValidationError:
                raise refused("invalid_request", f"tenant: give {TENANT_WORDS}") from None
        tenant = self._tenants.require(call.caller, named)
        until = query.get("until", "0")
        if not (until.isascii() and until.isdigit() and len(until) < 16):
            raise refused("invalid_request", "until: it is a time in ms since the epoch")
        return Asked(request_id, tenant, words[2] if len(words) == 3 else "", int(until))

    async def _result(self, call: Call, asked: Asked) -> Result | None:
        """The answer, None while there is none.

        Raises:
            Refused: 404, no such request is known here.
        """
        known = self._exchange.known(asked.key)
        if known is not None:
            return known
        left_s = self._left_s(asked)
        if left_s is None:
            raise refused(
                "unanswered",
                "no request of this id was answered in the last minutes, nor is one open here",
                status=404,
                title="No such request",
            )
        preference = preference_of(call.http.headers.getlist("prefer"))
        if not preference.wait_s:
            return None
        call.headers["Preference-Applied"] = f"wait={preference.wait_s:.0f}"
        waiting = self._exchange.answer(asked.key, min(preference.wait_s, left_s))
        try:
            return await unless_gone(call.http, waiting)
        except TimeoutError:
            return None

    def _left_s(self, asked: Asked) -> float | None:
        """How long its answer may still take; None where the request is not known to be open."""
        now = int(time.time() * 1000)
        if now < asked.until <= now + MOST_AHEAD_MS:
            return (asked.until - now) / 1000
        return MOST_AHEAD_MS / 1000 if self._exchange.is_open(asked.key) else None

    async def _cancel(self, asked: Asked) -> Reply:
        """Also of what is not known here: it may have been sent through another replica."""
        known = self._exchange.known(asked.key)
        if known is not None:
            return shown(known, "json")
        await self._exchange.cancel(asked.id, asked.tenant)
        body = msgspec.json.encode({"id": asked.id, "status": "cancelling"})
        return Reply(202, JSON, body, (("Retry-After", str(RETRY_S)),))

    def _events(self, call: Call, asked: Asked) -> Response:
        known, left_s = self._exchange.known(asked.key), self._left_s(asked)
        if known is None and left_s is None:
            raise refused("unanswered", "no such request is known here", status=404, title="No such request")
        since = asked.until - MOST_AHEAD_MS if asked.until else None
        after = time_of(call.http.headers.get("last-event-id"))
        timeout_s = GRACE_S if left_s is None else left_s
        return self._asking.stream(call, asked.key, since, timeout_s=timeout_s, after=after)

    async def _output(self, call: Call, result: Result) -> Response:
        """The output alone, from where it lies."""
        headers = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": _SANDBOX}
        if result.claim is not None:
            # Held in memory until the reader has it: many at once must not be too much.
            call.seat.add(result.claim.size)
            data = await self._uploads.get(result.claim, result.tenant)
            media_type = result.claim.content_type or "application/octet-stream"
            call.seat.handed_over = True
            return Download(data, media_type, headers, call.seat.leave)
        if isinstance(result.output, bytes):
            return Response(result.output, 200, headers, "application/octet-stream")
        if wire_of("json", accept(call.http)) == "msgpack":
            return Response(msgspec.msgpack.encode(result.output), 200, headers, MSGPACK)
        return Response(msgspec.json.encode(result.output), 200, headers, JSON)


def nothing_here() -> Refused:
    """The refusal of a path that there is nothing at."""
    detail = "nothing is at this path; /docs shows what there is"
    return refused("invalid_request", detail, status=404, title="No such path")


def _report(result: Result, accepted: str) -> Response:
    from edgeway.report import render

    headers = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": _SANDBOX}
    if "html" in accepted:
        return Response(render(result, "html", links=True), 200, headers, "text/html")
    return Response(render(result, "markdown", links=True), 200, headers, "text/markdown")


def _segments(http: Http) -> list[str]:
    """The words of the path, each decoded on its own: an id may hold a slash."""
    raw: bytes = http.scope.get("raw_path") or http.url.path.encode()
    path = raw.partition(b"?")[0].decode("latin-1")
    return [unquote(word) for word in path.strip("/").split("/")]
