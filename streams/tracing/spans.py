"""Spans: what a role tells of a request that somebody asked to trace. No payload, no part of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from streams.tracing.ids import PLAN, REQUEST, RESULT, Context, Spans, is_root, of_subtask

Value = str | int | float | bool
Kind = Literal["internal", "server", "client", "producer", "consumer"]
MOST_LINKS = 16


class Event(NamedTuple):
    """Something that happened within a span, at a time in ms."""

    name: str
    at: int
    attributes: Mapping[str, Value] = {}


class Span(NamedTuple):
    """One finished span. Times are ms since the epoch on the broker's clock; `parent` None: a root. `error`
    is the code of a Failure. `links` are spans of other traces that shared its work."""

    trace: str
    id: int
    parent: int | None
    name: str
    start: float
    end: float
    attributes: Mapping[str, Value] = {}
    kind: Kind = "internal"
    error: str | None = None
    events: Sequence[Event] = ()
    links: Sequence[Context] = ()


class Tracer(Protocol):
    """Takes spans and never waits; what there is no room for is dropped and counted."""

    def take(self, spans: Sequence[Span]) -> None:
        """Export `spans` some time."""
        ...


def plan_span(
    spans: Spans, start: float, end: float, attributes: Mapping[str, Value], error: str | None
) -> Span:
    """A request was planned or refused."""
    trace = spans.context.trace
    return Span(trace, spans.id(PLAN), spans.id(REQUEST), "plan", start, end, attributes, error=error)


def request_span(
    spans: Spans,
    start: float,
    end: float,
    attributes: Mapping[str, Value],
    error: str | None,
    events: Sequence[Event] = (),
) -> Span:
    """From the append of the request to its answer: a root, or a child of the caller's span."""
    context = spans.context
    parent = None if is_root(context) else context.span
    return Span(
        context.trace,
        spans.id(REQUEST),
        parent,
        "request",
        start,
        end,
        attributes,
        kind="server",
        error=error,
        events=events,
    )


def result_span(spans: Spans, at: float, attributes: Mapping[str, Value], error: str | None) -> Span:
    """The answer is handed to Kafka."""
    trace = spans.context.trace
    return Span(
        trace, spans.id(RESULT), spans.id(REQUEST), "result", at, at, attributes, kind="producer", error=error
    )


def subtask_span(
    spans: Spans,
    place: tuple[str, str, int],
    start: float,
    end: float,
    attributes: Mapping[str, Value],
    error: str | None,
) -> Span:
    """One attempt (`place`: step, side, number) from its dispatch to its answer, or to that of the
    request."""
    name = of_subtask(*place)
    trace = spans.context.trace
    return Span(
        trace, spans.id(name), spans.id(PLAN), f"subtask {place[0]}", start, end, attributes, error=error
    )
