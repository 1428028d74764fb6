"""The spans that the router tells."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from schemas import ids
from schemas.messages import Failure, Plan, RequestInfo, Result
from streams.router.plan import Planned
from streams.router.telemetry import Telemetry
from streams.tracing import Span, sampled_spans
from streams.tracing.ids import REQUEST, root


class Kept:
    """A tracer that keeps what it is told."""

    def __init__(self) -> None:
        self.spans: list[Span] = []

    def take(self, spans: Any) -> None:
        self.spans += spans


@pytest.mark.parametrize("request_id", ["a", ids.conflicting("a", "digest")])
def test_a_plan_stands_below_the_request_that_it_answers(request_id: str) -> None:
    parent = root("a", 1, 1.0)
    info = RequestInfo(id=request_id, tenant="x", accepted=1, deadline=2, traceparent=parent)
    failure = Failure(code="id_conflict", message="m")
    answer = Result(id=request_id, tenant="x", status="error", error=failure)
    planned = Planned(Plan(request=info, rules="r", answer=answer), ())
    admitted: Any = SimpleNamespace(scope=ids.scoped("x", "a"))
    tracer: Any = Kept()
    item: Any = SimpleNamespace(admitted=admitted, planned=planned, waits=False)
    Telemetry(tracer).planned([item], 5, 0.001)
    spans = sampled_spans(parent, ids.scoped("x", request_id))
    assert spans is not None
    (span,) = tracer.spans
    # As the aggregator calls it, which knows the answer's id alone.
    assert (span.parent, span.error) == (spans.id(REQUEST), "id_conflict")
