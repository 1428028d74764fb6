"""Sending a request, and waiting for its answer as long as the caller wants to."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable

from starlette.requests import Request as Http
from starlette.responses import Response

from edgeway.errors import SendUnknown
from edgeway.exchange import Event, Exchange, Sent
from edgeway.gateway.answers import location, still_open
from edgeway.gateway.calls import Call
from edgeway.gateway.events import MEDIA_TYPE, EventStream
from edgeway.gateway.prefer import preference_of
from edgeway.gateway.problems import refused
from edgeway.gateway.tenants import Tenants
from edgeway.gateway.tracing import entered
from edgeway.roles.bodies import unless_gone
from schemas.bounds import DEFAULT_DEADLINE_MS
from schemas.codec import digest_of
from schemas.ids import scoped
from schemas.messages import Format, Request, Result
from schemas.rules import Rules
from streams.tracing.ids import parse, root
from workers.http.forms import Reply

GRACE_S = 15.0
"""An answer may come so long after the deadline, where an aggregator was killed and another took over."""
LOOK_BACK_MS = 5_000
EARLIER_MS = 3_600_000
"""An id that was answered before, and is no longer remembered, is looked for among the results of so long."""

Tell = Callable[[Result], Reply]


class Asking:
    """Asks `exchange` for callers. `wall` is the time in s since the epoch, `now` a steady clock in s."""

    def __init__(
        self,
        exchange: Exchange,
        tenants: Tenants,
        rules: Rules,
        *,
        trace_sample: float = 0.0,
        tells_spans: bool = False,
        now: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._exchange, self._tenants, self._rules = exchange, tenants, rules
        self._trace_sample, self._tells_spans = trace_sample, tells_spans
        self._now, self._wall = now, wall

    def adopt(self, rules: Rules) -> None:
        """Follow `rules` from now on."""
        self._rules = rules

    async def ask(self, call: Call, request: Request, fmt: Format, tell: Tell) -> Reply | Response:
        """Send `request` and give what `tell` makes of its answer, or the 202 or the stream asked for.

        Raises:
            Refused: there is no room for it, or another request has its id, or no answer came.
            EdgewayError: Kafka is away, or the exchange is closed.
        """
        assert request.id is not None
        call.id = request.id
        key = scoped(request.tenant, request.id)
        preference = preference_of(call.http.headers.getlist("prefer"))
        if preference.applied is not None:
            call.headers["Preference-Applied"] = preference.applied
        streams = MEDIA_TYPE in call.http.headers.get("accept", "")
        known = self._exchange.known(key)
        if known is not None and known.digest not in (None, digest_of(request)):
            raise refused("id_conflict", "the id was answered already, for a request with other content")
        if known is not None:
            return self.stream(call, key, None, timeout_s=GRACE_S) if streams else tell(known)
        call.seat.join(request.tenant, self._tenants.rule(request.tenant).max_open)
        patience_s = self.patience_s(request)
        wait_s = patience_s if preference.wait_s is None else min(preference.wait_s, patience_s)
        sent = await self._send(call, request, key, fmt, waits=wait_s > 0 and not streams)
        call.seat.drop_body()
        if streams:
            return self.stream(call, sent, int(self._wall() * 1000) - LOOK_BACK_MS, timeout_s=patience_s)
        result = await self._answer(call.http, sent, wait_s)
        if result is not None:
            return tell(result)
        if wait_s < patience_s:
            call.seat.leave_open(key, self._now() + patience_s)
            until = int((self._wall() + patience_s) * 1000)
            return still_open(request.id, location(request.id, request.tenant, until))
        late = await self._exchange.earlier(sent, int(self._wall() * 1000) - EARLIER_MS)
        if late is not None:
            return tell(late)
        raise refused(
            "unanswered", f"no answer came within {patience_s:.0f} s; ask GET /requests/ID for a late one"
        )

    def stream(
        self,
        call: Call,
        sent: Sent | str,
        since_ms: int | None,
        *,
        timeout_s: float,
        after: int | None = None,
    ) -> EventStream:
        """What happens to a request, as server-sent events; the call's seat is taken until they end."""
        events: AsyncIterator[Event] = self._exchange.events(sent, since_ms, timeout_s=timeout_s)
        call.seat.handed_over = True
        return EventStream(events, call.seat.leave, call.headers, after=after)

    def patience_s(self, request: Request) -> float:
        """How long an answer to `request` may take: its deadline, as the router finds it, and GRACE_S."""
        tenant = self._tenants.rule(request.tenant)
        rules = [self._rules.tasks.get(request.task)] if request.task else list(self._rules.tasks.values())
        of_task = max((rule.deadline_ms or 0 for rule in rules if rule is not None), default=0)
        deadline_ms = request.deadline_ms or max(tenant.deadline_ms or 0, of_task) or DEFAULT_DEADLINE_MS
        return deadline_ms / 1000 + GRACE_S

    async def _send(self, call: Call, request: Request, key: str, fmt: Format, *, waits: bool) -> Sent:
        parent, state = call.http.headers.get("traceparent"), call.http.headers.get("tracestate")
        if parse(parent) is None:
            parent, state = root(key, int(self._wall() * 1000), self._trace_sample), None
        assert parent is not None
        call.trace = entered(str(parse(parent)), key) if self._tells_spans else None
        if call.trace is not None:
            parent = call.trace.traceparent
        call.headers["traceparent"] = parent
        if state:
            call.headers["tracestate"] = state
        try:
            return await self._exchange.send(request, traceparent=parent, tracestate=state, fmt=fmt)
        except SendUnknown:
            if not waits:
                raise
            # It may be written all the same: whoever waits anyway is told of the answer if so.
            return Sent(key, request.id or "", digest_of(request))

    async def _answer(self, http: Http, sent: Sent, wait_s: float) -> Result | None:
        """The answer, None where none came within `wait_s`.

        Raises:
            ClientDisconnect: nobody waits any more.
        """
        if wait_s <= 0:
            return None
        try:
            return await unless_gone(http, self._exchange.answer(sent, wait_s))
        except TimeoutError:
            return None
