"""The gateway's own span of a call."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.messages import Request, Result
from streams.settings import Settings
from streams.tracing import REQUEST, Span, parse, sampled_spans
from tests.helpers.gateway import gateway

PARENT = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
QUIET = "00-" + "a" * 32 + "-" + "b" * 16 + "-00"


class Taken:
    def __init__(self) -> None:
        self.spans: list[Span] = []

    def take(self, spans: Sequence[Span]) -> None:
        self.spans += spans


async def test_it_stands_between_the_caller_and_the_request() -> None:
    taken = Taken()
    async with gateway(tracer=taken) as served:
        answer = await served.route({"task": "summarize", "id": "r1"}, headers={"traceparent": PARENT})
        sent = parse(served.exchange.headers[-1][0])
    assert sent is not None
    (span,) = taken.spans
    assert (span.name, span.trace, span.parent) == ("gateway route", "a" * 32, int("b" * 16, 16))
    assert (sent.trace, sent.span, sent.sampled) == ("a" * 32, span.id, True)
    assert answer.headers["traceparent"] == str(sent)
    assert span.attributes == {"edgeway.status": 200}
    assert span.error is None
    assert span.end >= span.start
    before, after = sampled_spans(PARENT, "r1"), sampled_spans(str(sent), "r1")
    assert before is not None
    assert after is not None
    assert before.id(REQUEST) == after.id(REQUEST) != span.id


async def test_without_a_caller_s_context_it_is_the_root() -> None:
    taken = Taken()
    async with gateway(tracer=taken, settings=Settings(trace_sample=1.0)) as served:
        await served.route({"task": "summarize"})
    (span,) = taken.spans
    assert span.parent is None


async def test_what_nobody_asked_for_is_sent_on_as_it_came_and_told_to_nobody() -> None:
    taken = Taken()
    async with gateway(tracer=taken) as served:
        await served.route({"task": "summarize"}, headers={"traceparent": QUIET})
        assert served.exchange.headers[-1][0] == QUIET
    assert taken.spans == []


async def test_a_failure_is_one() -> None:
    async def silent(request: Request) -> Result | None:
        return None

    taken = Taken()
    async with gateway(silent, tracer=taken) as served:

        async def broken(*_: object, **__: object) -> None:
            raise RuntimeError("secret")

        served.exchange.send = broken  # type: ignore[assignment]
        await served.route({"task": "summarize"}, headers={"traceparent": PARENT})
    (span,) = taken.spans
    assert span.error == "500"
    assert "secret" not in repr(span)
