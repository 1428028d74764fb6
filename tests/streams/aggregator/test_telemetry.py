"""What an aggregator tells of its answers."""

from __future__ import annotations

import msgspec
import pytest
from prometheus_client import REGISTRY

from schemas.ids import scoped
from schemas.messages import Timings
from streams.tracing import PLAN, REQUEST, RESULT, Span, Spans, of_subtask, parse, root
from tests.helpers.aggregation import CLOUD, LOCAL, T0, Host, World, partial, plan, step

PARENT = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"


class Taken:
    def __init__(self) -> None:
        self.spans: list[Span] = []

    def take(self, spans) -> None:
        self.spans += spans

    def named(self, name: str) -> Span:
        (found,) = [span for span in self.spans if span.name == name]
        return found


async def answered(of, *partials) -> Taken:
    taken, world = Taken(), World()
    host = Host(world, tracer=taken)
    await host.settled()
    world.append(of, scoped(of.request.tenant, of.request.id))
    for each in partials:
        world.clock.time += 40
        world.append(each, scoped(of.request.tenant, of.request.id))
        await host.settled()
    return taken


def spans(traceparent: str, scope: str) -> Spans:
    context = parse(traceparent)
    assert context is not None
    return Spans(context, scope)


async def test_weak_then_cloud_are_two_attempts_below_the_plan() -> None:
    asked = plan("r", step("s", LOCAL, CLOUD), traceparent=PARENT, tenant="acme", task="intent")
    scope = scoped("acme", "r")
    weak = partial(scope, confidence=0.1, timings=Timings(queue_ms=3.0, service_ms=7.0))
    taken = await answered(asked, weak, partial(scope, side="cloud", attempt=1))
    ids = spans(PARENT, scope)
    request, result = taken.named("request"), taken.named("result")
    assert (request.trace, request.id, request.parent) == ("a" * 32, ids.id(REQUEST), int("b" * 16, 16))
    assert (result.id, result.parent) == (ids.id(RESULT), ids.id(REQUEST))
    assert (request.start, request.end) == (T0, result.end)
    local, cloud = (span for span in taken.spans if span.name == "subtask s")
    assert (local.id, cloud.id) == (ids.id(of_subtask("s", "local", 0)), ids.id(of_subtask("s", "cloud", 1)))
    assert local.parent == cloud.parent == ids.id(PLAN)
    assert (local.attributes["edgeway.trigger"], cloud.attributes["edgeway.trigger"]) == ("first", "weak")
    assert local.end - local.start == 10
    assert cloud.attributes["edgeway.answered"] is True
    (escalation,) = request.events
    assert (escalation.name, escalation.attributes["edgeway.side"]) == ("escalation", "cloud")


async def test_an_attempt_that_failed_and_one_that_never_answered_say_so() -> None:
    asked = plan("r", step("s", LOCAL, CLOUD), traceparent=PARENT)
    taken = await answered(asked, partial("r", error=True))
    assert taken.spans == [], "it is open"
    world = World()
    taken = Taken()
    host = Host(world, tracer=taken)
    await host.settled()
    world.append(asked, "r")
    world.append(partial("r", error=True), "r")
    await host.settled()
    await host.pass_time(asked.request.deadline - T0 + 1)
    local, cloud = (span for span in taken.spans if span.name == "subtask s")
    assert local.error == "backend_error"
    assert (cloud.error, cloud.attributes["edgeway.answered"], cloud.end) == (None, False, world.clock.time)
    assert taken.named("request").error is not None


async def test_a_request_that_came_without_a_context_is_a_root() -> None:
    taken = await answered(plan("r", traceparent=root("r", T0, 1.0)), partial("r"))
    assert taken.named("request").parent is None


@pytest.mark.parametrize("traceparent", [None, root("r", T0, 0.0)])
async def test_nothing_is_told_of_what_nobody_asked_for(traceparent) -> None:
    taken = await answered(plan("r", traceparent=traceparent), partial("r"))
    assert taken.spans == []


async def test_no_span_holds_what_was_asked_or_answered() -> None:
    asked = plan("r", traceparent=PARENT, tenant="acme")
    asked = msgspec.structs.replace(asked, inputs={"text": "secret-input"}, query="secret-query")
    taken = await answered(asked, partial(scoped("acme", "r"), output="secret-output"))
    assert taken.spans
    text = repr(taken.spans)
    assert not [word for word in ("secret", "acme") if word in text]


async def test_answers_are_counted_by_status_and_code() -> None:
    def count(status: str, code: str) -> float:
        labels = {"status": status, "code": code}
        return REGISTRY.get_sample_value("edgeway_results_total", labels) or 0.0

    before = count("ok", "")
    await answered(plan("r"), partial("r"))
    assert count("ok", "") == before + 1


async def test_the_age_of_the_oldest_open_request() -> None:
    world = World()
    host = Host(world)
    await host.settled()
    assert host.aggregator.oldest(T0) == 0
    world.append(plan("r"), "r")
    await host.settled()
    assert host.aggregator.oldest(T0 + 250) == 250
