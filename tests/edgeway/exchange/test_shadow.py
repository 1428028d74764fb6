"""The events that a request's records in `joins` tell."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from edgeway.exchange.ports import Event
from edgeway.exchange.shadow import Shadow
from schemas.messages import Checkpoint, Decision
from tests.helpers.aggregation import T0, partial, plan, step

PLAN = plan(decisions=(Decision(step="s", side="local", rule="confidence_first"),), task="intent")


def kinds(events: list[Event]) -> list[str]:
    return [event.kind for event in events]


def test_a_weak_answer_is_escalated() -> None:
    shadow = Shadow()
    (planned,) = shadow.take(PLAN, T0)
    assert planned.data["steps"][0] | {"attempts": None} == {
        "step": "s",
        "side": "local",
        "capability": "nlp/intent",
        "rule": "confidence_first",
        "after": [],
        "attempts": None,
    }
    assert planned.data["deadline"] == T0 + 10_000 == shadow.deadline
    weak = partial(PLAN, confidence=0.4, output="SECRET")
    answered, escalated = shadow.take(weak, T0 + 5)
    assert answered.data["confidence"] == 0.4
    assert escalated.data == {"step": "s", "from": "local", "to": "cloud", "trigger": "weak", "attempt": 1}
    assert not shadow.is_over
    assert kinds(shadow.take(partial(PLAN, side="cloud", attempt=1), T0 + 50)) == ["partial"]
    assert shadow.is_over
    assert shadow.take(weak, T0 + 60) == []


def test_silence_is_seen_by_time_alone() -> None:
    shadow = Shadow()
    shadow.take(plan("r", step(slow_ms=100)), T0)
    assert shadow.tick(T0 + 99) == []
    (event,) = shadow.tick(T0 + 100)
    assert (event.kind, event.at, event.data["trigger"]) == ("escalated", T0 + 100, "silent")
    assert shadow.tick(T0 + 200) == []


def test_a_checkpoint_tells_what_was_missed_and_nothing_twice() -> None:
    weak = partial(PLAN, confidence=0.4)
    checkpoint = Checkpoint(plan=PLAN, partials=(weak,), started={})
    shadow = Shadow()
    assert kinds(shadow.take(checkpoint, T0)) == ["planned", "partial", "escalated"]
    assert shadow.take(checkpoint, T0 + 1) == []
    other = Shadow()
    assert kinds(other.take(weak, T0) + other.take(PLAN, T0 + 1)) == ["planned", "partial", "escalated"]


RECORDS = [
    PLAN,
    plan(inputs={"text": "SECRET"}, digest="another"),
    partial(PLAN, confidence=0.4, output={"text": "SECRET"}),
    partial(PLAN, side="cloud", attempt=1, output="SECRET"),
    partial(PLAN, side="cloud", attempt=1, error=True),
    partial(PLAN, "unknown"),
    Checkpoint(plan=PLAN, partials=(partial(PLAN, error=True),), started={}),
]


@given(st.lists(st.tuples(st.sampled_from(RECORDS), st.integers(0, 20_000)), max_size=12))
def test_whatever_comes_it_tells_no_payload_and_each_thing_once(records: list) -> None:
    shadow = Shadow()
    events: list[Event] = []
    for record, after in records:
        events += shadow.take(record, T0 + after)
    said = json.dumps([event.data for event in events])
    assert "SECRET" not in said
    assert "hello" not in said
    assert kinds(events).count("planned") <= 1
    assert kinds(events)[:1] in ([], ["planned"])
    assert kinds(events).count("escalated") <= 1
    assert len(events) <= 8
