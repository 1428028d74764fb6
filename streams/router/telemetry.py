"""What the router tells of its batches: counts, times, and the spans of those that somebody traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from schemas import ids
from streams import metrics
from streams.delivery import Record
from streams.router.admission import Admitted
from streams.router.plan import Planned
from streams.tracing import Span, Tracer, is_sampled, plan_span, sampled_spans


class Planning(Protocol):
    """A request in the router's hands; see round.Item."""

    @property
    def admitted(self) -> Admitted: ...
    @property
    def planned(self) -> Planned | None: ...
    @property
    def waits(self) -> bool: ...


class Telemetry:
    """Told once a batch. `tracer` None: no spans are told."""

    def __init__(self, tracer: Tracer | None = None) -> None:
        self._tracer = tracer
        self._waits = metrics.stage("request_wait")
        self._plans = metrics.stage("plan")

    def read(self, records: Sequence[Record], now: int) -> None:
        """`records` were read from their topic at `now` (ms)."""
        self._waits.since(now, [record.timestamp for record in records])

    def planned(self, items: Sequence[Planning], began: int, took_s: float) -> None:
        """`items` were planned or refused, together: from `began` (ms), in `took_s`."""
        self._plans.observe(took_s, len(items))
        _count(items)
        if self._tracer is None:
            return
        ended = began + took_s * 1000.0
        spans = [
            _span(item.planned, began, ended)
            for item in items
            if item.planned is not None and is_sampled(item.planned.plan.request.traceparent)
        ]
        if spans:
            self._tracer.take([span for span in spans if span is not None])


def _span(planned: Planned, began: int, ended: float) -> Span | None:
    plan = planned.plan
    # The id that the plan answers: a conflict has one of its own, and so has the span of its request.
    scope = ids.scoped(plan.request.tenant, plan.request.id)
    spans = sampled_spans(plan.request.traceparent, scope)
    if spans is None:
        return None
    attributes: dict[str, str | int | float | bool] = {
        "edgeway.steps": len(plan.steps),
        "edgeway.rules": plan.rules,
        "edgeway.privacy": plan.request.privacy.level,
        "edgeway.cached": plan.answer is not None and plan.answer.cached,
    }
    for decision in plan.decisions:
        attributes[f"edgeway.step.{decision.step}.side"] = decision.side or "none"
        attributes[f"edgeway.step.{decision.step}.rule"] = decision.rule
    error = None if plan.answer is None or plan.answer.error is None else plan.answer.error.code
    return plan_span(spans, float(began), ended, attributes, error)


def _count(items: Sequence[Planning]) -> None:
    outcomes: Counter[str] = Counter()
    routes: Counter[tuple[str, str]] = Counter()
    closed: Counter[tuple[str, str]] = Counter()
    for item in items:
        if item.planned is None:
            outcomes["repeat"] += not item.waits
            continue
        answer = item.planned.plan.answer
        if answer is None or answer.error is None:
            outcomes["planned" if answer is None else "stale" if answer.degraded else "cached"] += 1
        else:
            outcomes[answer.error.code] += 1
        if answer is None or answer.error is not None:
            for decision in item.planned.plan.decisions:
                routes[decision.side or "none", decision.rule] += 1
                for side, rules in decision.forbidden.items():
                    for rule in rules:
                        closed[side, rule] += 1
    for outcome, count in outcomes.items():
        metrics.REQUESTS.labels(outcome).inc(count)
    for route, count in routes.items():
        metrics.ROUTES.labels(*route).inc(count)
    for reason, count in closed.items():
        metrics.CLOSED.labels(*reason).inc(count)
