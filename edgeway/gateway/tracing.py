"""The gateway's own span of a traced call: above that of the request, below the caller's."""

from __future__ import annotations

from typing import NamedTuple

from streams.tracing import Context, Span, Spans, is_root, sampled_spans

_NAME = "gateway"


class Entered(NamedTuple):
    """A traced call: the context that it came with, and the ids of its request's spans."""

    context: Context
    spans: Spans

    @property
    def traceparent(self) -> str:
        """What the request is sent with."""
        return self.spans.at(_NAME)

    def span(self, route: str, status: int, ended_ms: float, took_s: float) -> Span:
        """From the call's head to its answer, of a stream to its beginning."""
        return Span(
            self.context.trace,
            self.spans.id(_NAME),
            None if is_root(self.context) else self.context.span,
            f"gateway {route}",
            ended_ms - took_s * 1000.0,
            ended_ms,
            {"edgeway.status": status},
            kind="server",
            error=str(status) if status >= 500 else None,
        )


def entered(traceparent: str, key: str) -> Entered | None:
    """A call for the request `key` (its scoped id); None where nobody asked for its spans."""
    spans = sampled_spans(traceparent, key)
    return None if spans is None else Entered(spans.context, spans)
