"""What an aggregator tells of its answers: counts, times, and the spans of requests that somebody traces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client import Counter

from schemas.ids import subtask_id
from schemas.messages import Attempt, Failure, Result, Trigger
from streams import metrics
from streams.aggregator.effects import Answer, Effects
from streams.aggregator.join import Join
from streams.aggregator.progress import Progress
from streams.delivery.records import Record
from streams.tracing import (
    Event,
    Span,
    Spans,
    Tracer,
    is_sampled,
    request_span,
    result_span,
    sampled_spans,
    subtask_span,
)
from streams.tracing.spans import Value


class Telemetry:
    """Told once a batch. `tracer` None: no spans are told."""

    def __init__(self, tracer: Tracer | None = None) -> None:
        self._tracer = tracer
        self._waits = metrics.stage("join_wait")
        self._whole = metrics.stage("whole")
        self._last = metrics.stage("answer")
        self._results: dict[tuple[str, str], Counter] = {}

    def read(self, records: Sequence[Record], now: int) -> None:
        """`records` of `joins` were read at `now` (ms)."""
        self._waits.since(now, [record.timestamp for record in records])

    def answered(self, effects: Effects, now: int) -> None:
        """The answers of `effects` go out at `now` (ms)."""
        if not effects.answers:
            return
        self._whole.since(now, [answer.request.accepted for answer in effects.answers])
        self._last.since(now, [join.heard_at for join, _ in effects.closed if join.heard_at])
        for answer in effects.answers:
            result = answer.result
            outcome = (result.status, "" if result.error is None else result.error.code)
            counter = self._results.get(outcome)
            if counter is None:
                counter = self._results[outcome] = metrics.RESULTS.labels(*outcome)
            counter.inc()
        if self._tracer is not None:
            self._trace(self._tracer, effects, now)

    def _trace(self, tracer: Tracer, effects: Effects, now: int) -> None:
        traced = [answer for answer in effects.answers if is_sampled(answer.request.traceparent)]
        if not traced:
            return
        joins = {join.id: join for join, _ in effects.closed}
        found: list[Span] = []
        for answer in traced:
            found += spans_of(answer, joins.get(answer.key), now)
        tracer.take(found)


def spans_of(answer: Answer, join: Join | None, now: int) -> list[Span]:
    """The spans of an answered request but its router's and its workers'; none where nobody asked."""
    request, result = answer.request, answer.result
    spans = sampled_spans(request.traceparent, answer.key)
    if spans is None:
        return []
    code = None if result.error is None else result.error.code
    attributes = _attributes(answer, result)
    events: list[Event] = []
    found: list[Span] = []
    if join is not None:
        for step in join.steps.values():
            for index, span in _subtasks(spans, join, step, now):
                found.append(span)
                trigger = step.triggers.get(index)
                if trigger is not None and trigger != "first":
                    events.append(_escalation(step, index, trigger))
    start = float(request.accepted)
    found.append(request_span(spans, start, float(now), attributes, code, events))
    found.append(result_span(spans, float(now), {"edgeway.status": result.status}, code))
    return found


def _attributes(answer: Answer, result: Result) -> dict[str, Value]:
    attributes: dict[str, Value] = {
        "edgeway.status": result.status,
        "edgeway.approximate": result.approximate,
        "edgeway.cached": result.cached,
        "edgeway.cost": result.cost,
        "edgeway.request": answer.request.id,
    }
    if answer.request.task is not None:
        attributes["edgeway.task"] = answer.request.task
    if result.degraded:
        attributes["edgeway.degraded"] = ",".join(result.degraded)
    return attributes


def _subtasks(spans: Spans, join: Join, step: Progress, now: int) -> Iterator[tuple[int, Span]]:
    for index, began in sorted(step.started.items()):
        attempt = step.step.attempts[index]
        partial = join.partials.get(subtask_id(join.id, step.name, attempt.side, index))
        failure = step.failures.get(index)
        end = float(now)
        if partial is not None:
            timings = partial.timings
            # By the worker's clock and figures: the append of the partial is not kept.
            end = min(end, began + timings.queue_ms + timings.service_ms)
            failure = partial.error or failure
        attributes = _of_attempt(step, attempt, index, answered=partial is not None)
        if partial is not None and partial.confidence is not None:
            attributes["edgeway.confidence"] = partial.confidence
        place = (step.name, attempt.side, index)
        yield index, subtask_span(spans, place, float(began), max(end, began), attributes, _code(failure))


def _of_attempt(step: Progress, attempt: Attempt, index: int, *, answered: bool) -> dict[str, Value]:
    return {
        "edgeway.step": step.name,
        "edgeway.capability": attempt.capability,
        "edgeway.side": attempt.side,
        "edgeway.attempt": index,
        "edgeway.trigger": step.triggers.get(index) or ("first" if index == 0 else "unknown"),
        "edgeway.answered": answered,
    }


def _escalation(step: Progress, index: int, trigger: Trigger) -> Event:
    attributes: dict[str, Value] = {
        "edgeway.step": step.name,
        "edgeway.trigger": trigger,
        "edgeway.side": step.step.attempts[index].side,
        "edgeway.attempt": index,
    }
    return Event("escalation", step.started[index], attributes)


def _code(failure: Failure | None) -> str | None:
    return None if failure is None else failure.code
