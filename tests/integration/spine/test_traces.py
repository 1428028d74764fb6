"""Each role a process of its own, on an embedded Kafka: what a collector is told of one request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import get_args

import pytest
from prometheus_client.parser import text_string_to_metric_families

from streams.metrics.stages import Stage
from streams.tracing import REQUEST, parse, sampled_spans
from tests.helpers.caller import Caller, new_id, read_topics
from tests.helpers.docker import ROOT
from tests.helpers.kafka import serve as serve_kafka
from tests.helpers.otlp import Collector, Told
from tests.helpers.roles import fetch
from tests.helpers.spine import Spine, write_rules
from tests.integration.spine.samples import SURE, UNSURE, UNSURE_INTENT, escalated

pytestmark = pytest.mark.integration

PARENT = "00-" + "1f" * 16 + "-" + "2e" * 8 + "-01"


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


@pytest.fixture(scope="module")
def traced(collector: Collector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spine]:
    folder = tmp_path_factory.mktemp("traces")
    headers = folder / "headers"
    headers.write_text("# of the operator\nAuthorization: Bearer secret-of-the-collector\n", encoding="utf-8")
    clusters = serve_kafka("embedded")
    spine = Spine(next(clusters), folder, write_rules(folder))
    about = ("--otlp", collector.url, "--otlp-headers-file", str(headers))
    try:
        spine.apply()
        spine.start("router", *about, "--trace-sample", "1")
        spine.start("aggregator", *about)
        spine.start("worker", *about)
        for role in spine.roles:
            role.wait_ready()
        yield spine
        spine.stop()
    finally:
        for role in spine.roles:
            role.kill()
        next(clusters, None)


@pytest.fixture
async def caller(traced: Spine) -> Iterator[Caller]:
    async with Caller(traced.kafka) as caller:
        yield caller


def of_trace(collector: Collector, trace: str, most: int) -> dict[str, Told]:
    def enough(spans: list[Told]) -> bool:
        return len({span.id for span in spans if span.trace == trace}) >= most

    spans = [span for span in collector.await_spans(enough) if span.trace == trace]
    return {f"{span.name} {span.attributes.get('edgeway.side', '')}".strip(): span for span in spans}


async def test_one_trace_shows_the_way_of_a_request(
    traced: Spine, caller: Caller, collector: Collector
) -> None:
    answer = await escalated(caller, {"task": "intent", "text": UNSURE})
    assert answer.body["output"]["intent"] == UNSURE_INTENT
    told = parse(answer.headers["traceparent"].decode())
    assert told is not None
    spans = of_trace(collector, told.trace, 7)
    assert set(spans) == {
        "request",
        "plan",
        "subtask intent local",
        "subtask intent cloud",
        "model local",
        "model cloud",
        "result",
    }
    request, plan, result = spans["request"], spans["plan"], spans["result"]
    assert (request.parent, plan.parent, result.parent) == ("", request.id, request.id)
    assert f"{told.span:016x}" == result.id
    for side in ("local", "cloud"):
        subtask, model = spans[f"subtask intent {side}"], spans[f"model {side}"]
        assert (subtask.parent, model.parent) == (plan.id, subtask.id)
        assert subtask.service == "edgeway-aggregator"
        assert model.service == "edgeway-worker"
    assert spans["subtask intent local"].attributes["edgeway.trigger"] == "first"
    assert spans["subtask intent cloud"].attributes["edgeway.trigger"] == "weak"
    assert plan.service == "edgeway-router"
    assert request.events == ("escalation",)
    assert request.start <= plan.start <= plan.end <= request.end
    assert request.attributes["edgeway.status"] == "ok"


async def test_a_caller_s_trace_goes_through_every_hop_and_redelivery_changes_nothing(
    traced: Spine, caller: Caller, collector: Collector
) -> None:
    request_id = new_id()
    body = json.dumps({"id": request_id, "task": "intent", "text": SURE}).encode()
    for _ in range(2):
        await caller.send(body, headers=[("traceparent", PARENT.encode()), ("tracestate", b"vendor=1")])
    answer = await caller.answer(request_id)
    spans = sampled_spans(PARENT, request_id)
    assert spans is not None
    found = of_trace(collector, "1f" * 16, 5)
    assert found["request"].parent == "2e" * 8
    assert found["request"].id == f"{spans.id(REQUEST):016x}"
    assert found["result"].id in answer.headers["traceparent"].decode()
    seen = {
        record.topic: dict(record.headers)["traceparent"].decode()
        for record in await read_topics(traced.kafka, ["local.nlp.intent", "results"])
        if (record.key or b"").startswith(request_id.encode())
    }
    assert seen["local.nlp.intent"] == spans.at("intent/local/0")
    assert seen["results"] == spans.at("result")
    assert (
        len({span.id for span in collector.spans() if span.trace == "1f" * 16 and span.name == "plan"}) == 1
    )


async def test_nobody_is_told_what_was_asked_or_answered(
    traced: Spine, caller: Caller, collector: Collector
) -> None:
    answer = await caller.ask({"id": new_id(), "task": "intent", "text": SURE, "tenant": "tenant-of-nobody"})
    told = parse(answer.headers["traceparent"].decode())
    assert told is not None
    assert "request" in of_trace(collector, told.trace, 5)
    everything = b"".join(collector.raw)
    for secret in (SURE, UNSURE, UNSURE_INTENT, "tenant-of-nobody", "secret-of-the-collector"):
        assert secret.encode() not in everything
    assert {head["authorization"] for head in collector.heads} == {"Bearer secret-of-the-collector"}
    assert set(collector.paths) == {"/v1/traces"}
    shown = fetch(traced.roles[0].port, "/metrics")[1]
    exported = next(
        line for line in shown.splitlines() if line.startswith('edgeway_spans_total{outcome="exported"')
    )
    assert float(exported.split()[-1]) >= 1


async def test_every_metric_of_every_role_is_on_the_page_and_each_stage_is_timed(
    traced: Spine, caller: Caller
) -> None:
    assert (await caller.ask({"id": new_id(), "task": "intent", "text": SURE})).status == "ok"
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    timed: set[str] = set()
    for role in traced.roles:
        for family in text_string_to_metric_families(fetch(role.port, "/metrics")[1]):
            name = family.name + ("_total" if family.type == "counter" else "")
            assert not family.name.startswith("edgeway_") or f"| `{name}` | {family.type} |" in page, name
            timed |= {
                sample.labels["stage"]
                for sample in family.samples
                if sample.name == "edgeway_stage_seconds_count" and sample.value
            }
            if family.name == "edgeway_build_info":
                assert [sample.value for sample in family.samples] == [1.0]
    assert timed == set(get_args(Stage))


async def test_an_unsampled_trace_is_handed_on_and_told_to_nobody(
    caller: Caller, collector: Collector
) -> None:
    request_id, quiet = new_id(), "00-" + "3c" * 16 + "-" + "4b" * 8 + "-00"
    body = json.dumps({"id": request_id, "task": "intent", "text": SURE}).encode()
    await caller.send(body, headers=[("traceparent", quiet.encode())])
    answer = await caller.answer(request_id)
    assert answer.headers["traceparent"].decode() == quiet
    assert not [span for span in collector.spans() if span.trace == "3c" * 16]
