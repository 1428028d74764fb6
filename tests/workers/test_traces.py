"""What a worker tells of its runs, and what the services that it asks are told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from prometheus_client import REGISTRY

from schemas.cards import Card
from streams.delivery import Batch
from streams.tracing import Span, Spans, of_model, of_subtask, parse, root, within
from tests.helpers.endpoint import Endpoint, Reply, endpoint
from tests.helpers.http_door import served
from tests.helpers.lanes import FakeClock, FakeLane, record, subtask
from workers.backends.function import FunctionBackend
from workers.backends.http import HttpBackend
from workers.telemetry import model_context
from workers.worker import Worker

PARENT = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
CARD = Card(capability="vision/digits", side="local", version="7", model="m", max_batch=8, max_wait_ms=50)


class Taken:
    def __init__(self) -> None:
        self.spans: list[Span] = []

    def take(self, spans: Sequence[Span]) -> None:
        self.spans += spans


@pytest.fixture
def server() -> Iterator[Endpoint]:
    yield from endpoint()


@asynccontextmanager
async def working(backend: Any, taken: Taken | None = None) -> AsyncIterator[Worker]:
    worker = Worker([backend], name="w1", clock=FakeClock(), tracer=taken)
    await worker.start()
    try:
        yield worker
    finally:
        await worker.stop(5)


async def run(worker: Worker, lane: FakeLane, *works: Any) -> None:
    records = [record(work, n) for n, work in enumerate(works)]
    await worker.handle(Batch(lane, records))  # type: ignore[arg-type]
    async with asyncio.timeout(10):
        while len(lane.settled) < len(works):
            await asyncio.sleep(0.002)


def traced(number: int, traceparent: str | None) -> Any:
    """A subtask as a router sends it."""
    parent = within(traceparent, f"r{number}", of_subtask("step", "local", 0))
    return subtask(number, inputs={"n": number}, traceparent=parent)


async def test_a_model_s_span_stands_below_its_subtask_and_links_to_the_rest_of_its_batch() -> None:
    taken, lane = Taken(), FakeLane()
    others = [root(f"r{n}", n, 1.0) for n in range(1, 4)]
    works = [
        traced(0, PARENT),
        *(traced(n, each) for n, each in enumerate(others, 1)),
        traced(4, root("r4", 1)),
    ]
    backend = FunctionBackend(CARD, lambda rows: [row["n"] for row in rows], batch=True)
    async with working(backend, taken) as worker:
        await run(worker, lane, *works)
    assert len(taken.spans) == 4, "one for each that somebody asked for"
    ours = taken.spans[0]
    context = parse(PARENT)
    assert context is not None
    ids = Spans(context, "r0")
    assert (ours.name, ours.trace) == ("model", "a" * 32)
    assert ours.id == ids.id(of_model("step", "local", 0))
    assert ours.parent == ids.id(of_subtask("step", "local", 0))
    assert ours.attributes["edgeway.capability"] == "vision/digits"
    assert ours.end >= ours.start
    together = [span for span in taken.spans if span.attributes["edgeway.rows"] == len(works)]
    for span in together:
        assert {link.span for link in span.links} == {other.parent for other in together} - {span.parent}


async def test_an_error_is_told_by_its_code_and_nothing_of_the_payload() -> None:
    taken, lane = Taken(), FakeLane()

    def fails(inputs: dict[str, Any], params: dict[str, Any]) -> Any:
        raise ValueError("secret-words of the model")

    async with working(FunctionBackend(CARD, fails), taken) as worker:
        await run(worker, lane, subtask(inputs={"text": "secret-input"}, traceparent=PARENT))
    (span,) = taken.spans
    assert span.error == "bad_input"
    assert "secret" not in repr(span)


async def test_the_service_elsewhere_is_told_the_model_s_span(server: Endpoint) -> None:
    card = Card(capability="vision/caption", side="cloud", version="1", model="m")
    work = subtask(
        id="r0/step/cloud/1",
        capability="vision/caption",
        traceparent=within(PARENT, "r0", of_subtask("step", "cloud", 1)),
        tracestate="vendor=secret",
    )
    lane = FakeLane(topic="cloud.vision.caption")
    async with working(HttpBackend(card, server.url)) as worker:
        await run(worker, lane, work)
    (call,) = server.calls
    assert call.headers["traceparent"] == within(PARENT, "r0", of_model("step", "cloud", 1))
    assert "tracestate" not in call.headers


@pytest.mark.parametrize("given", [None, root("r0", 1, 0.0)])
def test_what_is_not_sampled_goes_on_as_it_is(given: str | None) -> None:
    assert model_context(subtask(traceparent=given)) == given


async def test_calls_elsewhere_are_counted_by_outcome_with_tokens_and_cost(server: Endpoint) -> None:
    name = "test/counted"
    card = Card(capability=name, side="cloud", version="1", model="m", cost_per_call=0.5)
    reply = b'{"output": "x", "usage": {"tokens": 12}}'

    def value(metric: str, **labels: str) -> float:
        return REGISTRY.get_sample_value(metric, {"capability": name, **labels}) or 0.0

    answers = iter([Reply(status=429), Reply(body=reply), Reply(status=400)])
    server.reply = lambda _: next(answers)
    works = [subtask(n, id=f"r{n}/step/cloud/0", capability=name) for n in range(2)]
    lane = FakeLane(topic="cloud.test.counted")
    async with working(HttpBackend(card, server.url)) as worker:
        for n, work in enumerate(works):
            await run(worker, FakeLane(topic=lane.topic), work)
            assert value("edgeway_remote_calls_total", outcome="ok") == 1, n
    assert value("edgeway_remote_calls_total", outcome="bad_input") == 1
    assert value("edgeway_remote_retries_total") == 1
    assert value("edgeway_remote_seconds_count") == 2
    assert value("edgeway_cost_total", side="cloud") >= 0.5
    assert value("edgeway_cold_start_seconds_count", side="cloud") == 1
    assert value("edgeway_model_load_seconds_count", side="cloud") == 1


async def test_the_http_door_takes_a_callers_trace(server: Endpoint) -> None:
    card = Card(capability="vision/caption", side="local", version="1", model="m")
    async with served(HttpBackend(card, server.url)) as door:
        for head in ({"traceparent": PARENT}, {"traceparent": "00-broken"}, {}):
            said = await door.call(
                "/vision/caption", {"image_url": "https://example.com/a.png"}, headers=head
            )
            assert said.status_code == 200, said.text
    first, second, third = (call.headers.get("traceparent") for call in server.calls)
    assert first is not None
    context = parse(first)
    assert context is not None
    assert (context.trace, context.sampled) == ("a" * 32, True)
    assert (second, third) == (None, None)
