"""What a worker tells of its runs: where the time went, tokens, cost, first runs, and the spans of subtasks
that somebody traces."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from schemas.cards import Card
from schemas.errors import Malformed
from schemas.ids import parse_subtask_id
from schemas.messages import Subtask
from streams import metrics
from streams.delivery import Record
from streams.tracing import Context, Span, Spans, Tracer, is_sampled, of_model, parse
from streams.tracing.spans import MOST_LINKS, Value
from workers.backends import Answer
from workers.work import Run, Work

Cost = Callable[[Subtask, Answer, Card], float]


class Telemetry:
    """Told once a batch and once a run. `cost` says what an answer cost; `tracer` None: no spans are told."""

    def __init__(self, cost: Cost, tracer: Tracer | None = None) -> None:
        self._cost = cost
        self._tracer = tracer
        self._waits = metrics.stage("subtask_wait")
        self._queues = metrics.stage("queue")
        self._models = metrics.stage("model")
        self._warm: dict[tuple[str, str], tuple[str, str]] = {}

    def read(self, records: Sequence[Record], now: int) -> None:
        """`records` of subtasks were read at `now` (ms)."""
        self._waits.since(now, [record.timestamp for record in records])

    def finished(self, run: Run) -> None:
        """A run is about to be answered."""
        if not run.ran:
            return
        started = time.monotonic() * 1000.0 - run.service_ms
        for work in run.works:
            self._queues.observe(max(0.0, started - work.arrived) / 1000.0)
        self._models.observe(run.service_ms / 1000.0, len(run.works))
        self._note_first(run)
        self._note_use(run)
        if self._tracer is not None and any(is_sampled(work.subtask.traceparent) for work in run.works):
            self._tracer.take(_spans(run))

    def _note_first(self, run: Run) -> None:
        card = run.card
        place, version = (card.capability, card.side), (card.model, card.version)
        if self._warm.get(place) != version:
            self._warm[place] = version
            took_ms = run.began - min(work.appended for work in run.works) + run.service_ms
            metrics.COLD_START_S.labels(*place).observe(max(0.0, took_ms) / 1000.0)

    def _note_use(self, run: Run) -> None:
        card, tokens, cost = run.card, 0.0, 0.0
        for work, answer in zip(run.works, run.answers, strict=True):
            usage = answer.usage
            # What a backend gives has not been checked yet.
            if usage and type(usage) is dict:
                tokens += _amount(usage.get("tokens"))
            if card.side == "cloud" or work.subtask.max_cost:
                cost += self._cost(work.subtask, answer, card)
        if tokens:
            metrics.TOKENS.labels(card.capability, card.side).inc(tokens)
        if cost:
            metrics.COST.labels(card.capability, card.side).inc(cost)


def model_context(subtask: Subtask) -> str | None:
    """The traceparent of what a model calls elsewhere for `subtask`."""
    if not is_sampled(subtask.traceparent):
        return subtask.traceparent
    found = _own(subtask)
    return subtask.traceparent if found is None else found[1].at(found[2])


def _spans(run: Run) -> list[Span]:
    """One span for each traced subtask of a run; each links to some of the others'."""
    traced = [
        (work, answer, found)
        for work, answer in zip(run.works, run.answers, strict=True)
        if is_sampled(work.subtask.traceparent) and (found := _own(work.subtask)) is not None
    ]
    contexts = [context for _, _, (context, _, _) in traced[: MOST_LINKS + 1]]
    start, end = float(run.began), run.began + run.service_ms
    return [
        Span(
            context.trace,
            spans.id(name),
            context.span,
            "model",
            start,
            end,
            _attributes(run, work, answer),
            error=None if answer.error is None else str(answer.error.code),
            links=[other for other in contexts if other.span != context.span][:MOST_LINKS],
        )
        for work, answer, (context, spans, name) in traced
    ]


def _attributes(run: Run, work: Work, answer: Answer) -> dict[str, Value]:
    card = run.card
    found: dict[str, Value] = {
        "edgeway.capability": card.capability,
        "edgeway.side": card.side,
        "edgeway.trigger": work.subtask.trigger,
        "edgeway.model": card.model,
        "edgeway.version": card.version,
        "edgeway.rows": len(run.works),
        "edgeway.queue_ms": max(0, run.began - work.appended),
    }
    tokens = _amount(answer.usage.get("tokens")) if type(answer.usage) is dict else 0.0
    if tokens:
        found["edgeway.tokens"] = tokens
    return found


def _own(subtask: Subtask) -> tuple[Context, Spans, str] | None:
    """The context of a subtask, the ids of its request's spans, and the name of its model's."""
    context = parse(subtask.traceparent)
    if context is None:
        return None
    try:
        place = parse_subtask_id(subtask.id)
    except Malformed:
        return None
    return context, Spans(context, place.request), of_model(place.step, place.side, place.attempt)


def _amount(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return float(value) if math.isfinite(value) and value > 0 else 0.0
