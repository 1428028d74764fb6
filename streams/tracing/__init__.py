"""Traces: W3C contexts through every hop, and the spans that a role tells a Tracer."""

from streams.tracing.ids import (
    PLAN,
    REQUEST,
    RESULT,
    Context,
    Spans,
    admitted,
    is_root,
    is_sampled,
    of_model,
    of_subtask,
    parse,
    root,
    sampled_spans,
    within,
)
from streams.tracing.spans import Event, Span, Tracer, plan_span, request_span, result_span, subtask_span

__all__ = [
    "PLAN",
    "REQUEST",
    "RESULT",
    "Context",
    "Event",
    "Span",
    "Spans",
    "Tracer",
    "admitted",
    "is_root",
    "is_sampled",
    "of_model",
    "of_subtask",
    "parse",
    "plan_span",
    "request_span",
    "result_span",
    "root",
    "sampled_spans",
    "subtask_span",
    "within",
]
