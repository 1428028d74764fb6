"""The record of a decision: equal to what the router decides, one for each line, nothing of the payload."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgeway.explain_record import Explained, Line, Setting, explain_line
from edgeway.explain_registry import assumed
from edgeway.explain_text import preface, text_of
from edgeway.wrapping import columns
from schemas import codec
from schemas.messages import Request
from schemas.rules import parse_rules
from streams.router.admission import admit
from streams.router.planner import Planner
from tests.schemas.strategies import JSON_VALUES, structs

NOW = 1_700_000_000_000
RULES = parse_rules(
    json.dumps(
        {
            "privacy": {"detectors": ["formats"]},
            "budget": {"per_day": 1.0},
            "prices": {"cloud/nlp/intent": {"per_call": 0.25}, "cloud/b": {"per_call": 0.5}},
            "tenants": {"bank": {"privacy": "high"}},
            "tasks": {
                "intent": {"capability": "nlp/intent", "local_threshold": 0.8, "slow_ms": 300},
                "review": {
                    "phrases": ["review this", "审核理赔"],
                    "steps": [
                        {"name": "a", "side": "local"},
                        {"name": "b", "side": "cloud", "after": ["a"], "inputs": {"x": "steps.a"}},
                        {"name": "c", "after": ["a", "b"]},
                    ],
                },
            },
        }
    ).encode()
)
PLANNER = Planner(RULES)
SETTING = Setting(assumed(RULES), "assumed", NOW)
SECRET = "Ludmila Vorobyova, ludmila@quist-post.org"


def explained(request: dict[str, Any] | bytes, setting: Setting = SETTING, number: int = 1) -> Explained:
    raw = request if isinstance(request, bytes) else json.dumps(request).encode()
    return explain_line(PLANNER, setting, number, raw)


def test_a_request_without_an_id_is_named_by_its_line() -> None:
    assert explained({"task": "intent", "text": "x"}, number=7).id == "line-7"
    assert explained({"id": "mine", "task": "intent"}, number=7).id == "mine"


def test_the_plan_and_its_costs() -> None:
    found = explained({"task": "intent", "text": "where is my card", "deadline_ms": 900})
    (step,) = found.steps
    assert [(each.side, each.max_cost) for each in step.attempts] == [("local", 0.0), ("cloud", 0.25)]
    assert (step.side, step.threshold, step.slow_ms) == ("local", 0.8, 300)
    assert step.attempts[1].triggers == ("weak", "failed", "silent")
    assert (found.cost_bound, found.deadline_ms) == (0.25, 900)
    assert [each.cost for each in found.reservations] == [0.25]
    assert found.decisions[0].reserved == 0.25
    assert found.rules == RULES.version
    assert found.error is None


def test_the_query_finds_the_task_and_the_steps_keep_their_order() -> None:
    found = explained({"query": "请审核理赔", "text": "x"})
    assert found.task == "review"
    assert [(step.name, step.side, step.after) for step in found.steps] == [
        ("a", "local", ()),
        ("b", "cloud", ("a",)),
        ("c", "local", ("a", "b")),
    ]
    assert found.merge is not None


@pytest.mark.parametrize(
    ("request_", "reasons"),
    [
        ({"task": "intent", "text": "x", "privacy_level": "HIGH"}, ("declared",)),
        ({"task": "intent", "text": "x", "tenant": "bank"}, ("tenant",)),
        ({"task": "nothing", "text": "x", "privacy": "high"}, ("declared",)),
    ],
)
def test_what_is_sensitive_stays(request_: dict[str, Any], reasons: tuple[str, ...]) -> None:
    found = explained(request_)
    assert found.privacy is not None
    assert (found.cloud_allowed, found.privacy.level, found.privacy.reasons) == (False, "high", reasons)
    assert all(attempt.side == "local" for step in found.steps for attempt in step.attempts)


def test_personal_data_keeps_a_request_at_the_edge_and_is_not_shown() -> None:
    found = explained({"task": "intent", "text": f"my card is {SECRET}", "loose": {"deep": [SECRET]}})
    assert not found.cloud_allowed
    said = msgspec.json.encode(found).decode() + "\n".join(text_of(found))
    assert not [word for word in SECRET.replace(",", "").split() if word in said]


def test_a_task_that_the_rules_do_not_know_is_not_shown() -> None:
    found = explained(b'{"task": "ludmila.petrova@example.com", "text": "x"}')
    assert found.error is not None
    assert (found.task, found.error.code) == (None, "unknown_task")
    assert b"ludmila" not in msgspec.json.encode(found)
    assert "ludmila" not in "".join(text_of(found))


def test_a_request_that_may_be_masked_says_so_and_shows_nothing() -> None:
    said = {
        "privacy": {"detectors": ["formats"], "mask": ["email"]},
        "tasks": {"intent": {"capability": "ask"}},
    }
    rules = parse_rules(json.dumps(said).encode())
    asked = json.dumps({"task": "intent", "text": "write to kim.lee@quist-post.org"}).encode()
    found = explain_line(Planner(rules), Setting(assumed(rules), "assumed", NOW), 1, asked)
    assert found.privacy is not None
    assert (found.cloud_allowed, found.privacy.level, found.privacy.masked) == (True, "high", True)
    assert {attempt.side for step in found.steps for attempt in step.attempts} == {"local", "cloud"}
    text = "\n".join(text_of(found, 200))
    assert "the cloud gets placeholders instead of what was found" in text
    assert "kim.lee" not in text + msgspec.json.encode(found).decode()


@pytest.mark.parametrize("purse", ["spent", "away"])
def test_an_empty_purse_closes_what_costs(purse: Any) -> None:
    found = explained({"task": "intent", "text": "x"}, SETTING._replace(purse=purse))
    assert found.decisions[0].forbidden == {"cloud": ("budget",)}
    assert found.budget == purse
    refused = explained({"task": "review"}, SETTING._replace(purse=purse))
    assert refused.error is not None
    assert refused.steps == ()


@pytest.mark.parametrize(
    ("raw", "name", "code"),
    [
        (b'{"id": "b1", "task": ', "b1", "malformed"),
        (b"[1]", "line-3", "malformed"),
        (b"\xff\xfe", "line-3", "malformed"),
        (b'{"id": 5, "task": "intent"}', "line-3", "malformed"),
        (b'{"id": "b2", "v": 9}', "b2", "unsupported_version"),
        (b'{"task": "intent", "max_cost": -1}', "line-3", "malformed"),
        (b'{"x": "' + b"y" * 2**20 + b'"}', "line-3", "too_large"),
    ],
)
def test_a_bad_line_is_answered(raw: bytes, name: str, code: str) -> None:
    found = explained(raw, number=3)
    assert found.error is not None
    assert (found.id, found.error.code, found.privacy, found.cloud_allowed) == (name, code, None, False)
    assert found.error.message.startswith("line 3: ")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"{", "one JSON object a line"),
        (b'"task": "intent",', "one JSON object a line"),
        (b"null", "a map, not null"),
        (b"[5]", "a map, not a list; a file holds one JSON object a line"),
        (b"1.5", "a map, not a number"),
    ],
)
def test_a_bad_line_says_how_to_mend_it(raw: bytes, words: str) -> None:
    found = explained(raw)
    assert found.error is not None
    assert words in found.error.message


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(structs(Request, JSON_VALUES), st.sampled_from(["intent", "review", None]))
def test_the_decisions_are_those_of_the_router(request: Request, task: str | None) -> None:
    request = msgspec.structs.replace(request, task=task or request.task)
    try:
        raw = codec.encode(request, "json")
    except codec.Malformed:
        return
    found = explained(raw)
    again = json.loads(msgspec.json.encode(found))
    assert again["line"] == 1
    try:
        admitted = admit(Line(raw, 1, NOW))
    except codec.Malformed:
        assert found.error is not None
        return
    planned = PLANNER.decide(admitted, SETTING.view, NOW)
    assert found.decisions == planned.plan.decisions
    assert (
        again["decisions"] == json.loads(msgspec.json.encode(planned.plan))["decisions"]
        if (found.decisions)
        else again["decisions"] == []
    )
    assert found.cloud_allowed == planned.plan.request.privacy.cloud_allowed
    answer = planned.plan.answer
    assert found.error == (None if answer is None else answer.error)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=200) | structs(Request, JSON_VALUES).map(msgspec.json.encode))
def test_any_line_has_a_record_and_a_text(raw: bytes) -> None:
    found = explained(raw)
    assert json.loads(msgspec.json.encode(found))["id"]
    assert all(columns(line) <= 100 for line in text_of(found))


def test_the_text_shows_the_tree_the_factors_and_what_fired() -> None:
    lines = text_of(explained({"id": "r", "query": "review this"}), 200)
    text = "\n".join(lines)
    assert lines[0] == "r: task review, the cloud may have it"
    assert "    └─ a: a at the edge" in lines
    assert "       └─ b: b in the cloud" in lines
    assert any(
        line.startswith("          └─ c: c at the edge, after a and b; then c in the cloud") for line in lines
    )
    assert "Step b goes to the cloud: the rules name this side; it would cost 0.5 at most." in text
    assert "    latency  local 0.10 x 0.40 = 0.040 assumed; cloud 0.80 x 0.40 = 0.320 assumed" in lines
    assert "    score    local 0.610; cloud 0.440" in lines
    private = "\n".join(text_of(explained({"task": "intent", "privacy": "high"})))
    assert "it must not leave the edge" in private
    assert "[rule privacy; cloud closed by privacy]" in private
    assert "no request" in text_of(explained(b"{"))[0]


def test_the_preface_says_where_the_figures_come_from() -> None:
    assert "assumed" in preface("v", "assumed", "open")
    assert "heartbeats" in preface("v", "live", "spent")


def test_a_capability_on_one_side_is_explained_as_a_task() -> None:
    found = explained({"task": "cloud/nlp/intent", "text": "where is my card"})
    (step,) = found.steps
    assert (found.task, step.name, step.side, found.error) == ("cloud/nlp/intent", "intent", "cloud", None)
    assert text_of(found, 100)
    refused = explained({"task": "cloud/nlp/intent", "text": "x", "privacy": "high"})
    assert refused.error is not None
    assert refused.error.code == "no_placement"
