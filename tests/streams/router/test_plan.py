from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import codec
from schemas.messages import Attempt, Decision, Plan, Request
from schemas.rules import Rules
from streams.registry import Figures, Target, View
from streams.router import Planned
from tests.helpers.routing import MEASURED, UNMEASURED, decided, live_view, rules_of, view_of

CALIBRATED = msgspec.structs.replace(MEASURED, calibrated=True)
BUILTIN = rules_of(builtin=True)


def planned(rules: Rules, view: View, deadline_ms: int = 30_000, **fields: object) -> Planned:
    given = {"id": "r1", "task": "intent", "inputs": {"text": "where is my card"}, **fields}
    return decided(rules, Request(deadline_ms=deadline_ms, **given), view)  # type: ignore[arg-type]


def attempts(found: Planned, step: int = 0) -> list[tuple[str, tuple[str, ...]]]:
    return [(attempt.side, attempt.triggers) for attempt in found.plan.steps[step].attempts]


def decision(found: Planned, step: int = 0) -> Decision:
    return found.plan.decisions[step]


def refused(found: Planned) -> tuple[str, str]:
    assert found.first == ()
    assert found.plan.steps == ()
    assert found.plan.answer is not None
    assert found.plan.answer.status == "error"
    error = found.plan.answer.error
    assert error is not None
    return error.code, error.message


AUTO = rules_of(intent={})


class TestAttempts:
    def test_auto_uncalibrated_goes_by_score(self):
        found = planned(AUTO, view_of(local=UNMEASURED, cloud=UNMEASURED))
        assert decision(found).rule == "score"
        assert attempts(found) == [("local", ("first",)), ("cloud", ("failed", "silent"))]
        assert found.plan.steps[0].threshold is None

    def test_a_threshold_of_the_rules_makes_a_weak_attempt(self):
        found = planned(rules_of(intent={"local_threshold": 0.7}), view_of())
        assert attempts(found)[1] == ("cloud", ("weak", "failed", "silent"))
        assert found.plan.steps[0].threshold == 0.7

    def test_calibrated_local_first(self):
        found = planned(AUTO, view_of(local=CALIBRATED, cloud=msgspec.structs.replace(MEASURED, p50_ms=0.1)))
        assert decision(found).rule == "confidence_first"
        assert decision(found).threshold == 0.9
        assert attempts(found) == [("local", ("first",)), ("cloud", ("weak", "failed", "silent"))]
        assert found.plan.steps[0].threshold == 0.9

    def test_cloud_first_falls_back_to_local(self):
        slow = msgspec.structs.replace(MEASURED, p50_ms=900.0)
        rules = rules_of(intent={"weights": {"latency": 1, "cost": 0, "privacy": 0}, "local_threshold": 0.8})
        found = planned(rules, view_of(local=slow), deadline_ms=1000)
        assert attempts(found) == [("cloud", ("first",)), ("local", ("failed", "silent"))]
        assert found.plan.steps[0].threshold is None
        assert decision(found).side == "cloud"

    @pytest.mark.parametrize(
        ("task", "local", "request_", "threshold"),
        [
            ({}, CALIBRATED, {"privacy": "high"}, 0.9),
            ({"local_threshold": 0.7}, MEASURED, {"privacy": "high"}, 0.7),
            ({}, MEASURED, {"privacy": "high"}, None),
            ({"side": "local", "local_threshold": 0.7}, MEASURED, {}, 0.7),
            ({"side": "local"}, CALIBRATED, {}, None),
        ],
    )
    def test_a_threshold_stays_where_no_better_place_is_allowed(self, task, local, request_, threshold):
        """So that the aggregator marks an answer below it."""
        found = planned(rules_of(intent=task), view_of(local=local), **request_)
        assert attempts(found) == [("local", ("first",))]
        assert found.plan.steps[0].threshold == threshold

    @pytest.mark.parametrize("side", ["local", "cloud"])
    def test_a_fixed_side_has_one_attempt(self, side):
        found = planned(rules_of(intent={"side": side}), view_of())
        assert attempts(found) == [(side, ("first",))]
        assert decision(found).rule == "fixed_side"
        assert found.plan.steps[0].slow_ms is None

    def test_a_forbidden_side_is_named(self):
        found = planned(AUTO, view_of(local=CALIBRATED), privacy="high")
        assert attempts(found) == [("local", ("first",))]
        assert decision(found).rule == "privacy"
        assert decision(found).forbidden == {"cloud": ("privacy",)}

    def test_long_input_goes_to_the_cloud(self):
        found = planned(rules_of(intent={"max_local_tokens": 3}), view_of(local=CALIBRATED))
        assert attempts(found) == [("cloud", ("first",))]
        assert decision(found).rule == "max_local_tokens"

    def test_slow_ms_and_on_slow(self):
        found = planned(AUTO, view_of())
        assert (found.plan.steps[0].slow_ms, found.plan.steps[0].on_slow) == (500, "answer")
        found = planned(rules_of(intent={"slow_ms": 80, "on_slow": "wait"}), view_of())
        assert (found.plan.steps[0].slow_ms, found.plan.steps[0].on_slow) == (80, "wait")

    def test_the_bound_on_cost_travels(self):
        priced = msgspec.structs.replace(MEASURED, cost_per_call=0.1, max_cost=0.5)
        found = planned(AUTO, view_of(cloud=priced))
        assert [attempt.max_cost for attempt in found.plan.steps[0].attempts] == [0.0, 0.5]


class TestNoSideLeft:
    def test_nobody_alive(self):
        code, message = refused(planned(AUTO, View()))
        assert code == "no_placement"
        assert "no_live_capability" in message
        assert "intent" in message

    def test_high_privacy_on_a_cloud_step(self):
        found = planned(BUILTIN, live_view(BUILTIN), task="financial_report", privacy="high")
        code, message = refused(found)
        assert code == "no_placement"
        assert "privacy" in message
        assert found.plan.answer is not None
        assert found.plan.answer.decisions[-1].side is None

    def test_a_failing_breaker_closes_a_fixed_side(self):
        rules = rules_of(intent={"side": "local"})
        assert refused(planned(rules, view_of(gates={"local": "failing"})))[0] == "no_placement"

    def test_a_slow_breaker_gives_way_where_no_other_side_is_left(self):
        rules = rules_of(intent={"side": "local"})
        found = planned(rules, view_of(gates={"local": "slow"}))
        assert attempts(found) == [("local", ("first",))]
        assert decision(found).note == "breaker_slow gave way: no side was left"

    def test_a_slow_breaker_moves_an_auto_step(self):
        found = planned(AUTO, view_of(local=CALIBRATED, gates={"local": "slow"}))
        assert attempts(found) == [("cloud", ("first",))]
        assert decision(found).rule == "breaker_slow"

    def test_privacy_never_gives_way(self):
        found = planned(AUTO, view_of(local=None), privacy="high")
        assert refused(found)[0] == "no_placement"

    def test_a_half_open_breaker_lets_pass(self):
        found = planned(rules_of(intent={"side": "local"}), view_of(gates={"local": "half_open"}))
        assert attempts(found) == [("local", ("first",))]

    def test_scale_to_zero_is_placed_without_a_beat(self):
        found = planned(rules_of(intent={"scale_to_zero": True}), View())
        assert attempts(found)[0] == ("local", ("first",))

    def test_a_hopeless_queue_is_refused(self):
        full = msgspec.structs.replace(MEASURED, queue=1000)
        found = planned(AUTO, view_of(local=full, cloud=full), deadline_ms=1000)
        assert "backlog" in refused(found)[1]

    def test_an_idle_but_slow_model_is_tried(self):
        slow = msgspec.structs.replace(MEASURED, p50_ms=2000.0)
        found = planned(rules_of(intent={"side": "local"}), view_of(local=slow), deadline_ms=1000)
        assert attempts(found) == [("local", ("first",))]


class TestInputs:
    REFS = rules_of(
        two={
            "steps": [
                {"name": "a", "inputs": {"t": "inputs.text", "q": "query"}, "side": "local"},
                {
                    "name": "b",
                    "inputs": {"x": "steps.a.out", "p": "params.p"},
                    "after": ["a"],
                    "side": "local",
                },
            ],
        }
    )

    def test_resolved_for_the_first_subtasks_and_carried_for_the_later(self):
        found = planned(
            self.REFS, live_view(self.REFS), task="two", inputs={"text": "hi", "n": 1}, params={"p": 2}
        )
        assert [sent.subtask.id for sent in found.first] == ["r1/a/local/0"]
        assert found.first[0].subtask.inputs == {"t": "hi"}
        assert found.first[0].subtask.params == {"p": 2}
        assert found.plan.inputs == {"text": "hi", "n": 1}
        assert found.plan.params == {"p": 2}
        assert found.plan.steps[1].after == ("a",)
        assert found.plan.steps[1].inputs == {"x": "steps.a.out", "p": "params.p"}
        assert found.plan.merge is not None
        assert found.plan.merge.strategy == "collect"

    def test_left_out_of_the_plan_where_nothing_is_sent_later(self):
        found = planned(rules_of(intent={"side": "local"}), view_of(), query="why", params={"p": 1})
        assert (found.plan.inputs, found.plan.params, found.plan.query) == ({}, {}, None)
        assert found.first[0].subtask.inputs == {"text": "where is my card", "query": "why"}
        assert found.plan.merge is None

    def test_carried_where_a_second_attempt_may_follow(self):
        found = planned(AUTO, view_of(), query="why")
        assert found.plan.inputs == {"text": "where is my card"}
        assert found.plan.query == "why"

    def test_what_the_request_cannot_feed_is_refused(self):
        code, message = refused(planned(self.REFS, live_view(self.REFS), task="two", inputs={}))
        assert code == "invalid_request"
        assert "step a" in message
        assert "inputs.text" in message

    def test_the_examples_of_the_original(self):
        found = planned(BUILTIN, live_view(BUILTIN), task=None, query="生成财报分析", inputs={})
        assert [(sent.side, sent.subtask.capability) for sent in found.first] == [
            ("local", "finance/tokenize"),
            ("local", "nlp/entities"),
            ("cloud", "finance/indicators"),
            ("cloud", "finance/chart"),
        ]
        assert found.plan.merge is not None
        assert found.plan.merge.strategy == "weighted_fusion"
        found = planned(BUILTIN, live_view(BUILTIN), task=None, query="实时路况预测", inputs={"lat": 1.0})
        assert [sent.side for sent in found.first] == ["local", "cloud", "cloud"]
        assert found.plan.merge is not None
        assert found.plan.merge.strategy == "priority_override"

    def test_cloud_batch_size_bounds_the_cloud_alone(self):
        rules = rules_of(intent={"cloud_batch_size": 4})
        found = planned(rules, view_of(local=CALIBRATED))
        assert found.plan.steps[0].max_batch == 4
        assert found.first[0].subtask.max_batch is None
        found = planned(rules, view_of(local=None))
        assert found.first[0].subtask.max_batch == 4

    def test_ids_are_scoped_by_tenant(self):
        found = planned(AUTO, view_of(), tenant="acme")
        assert found.first[0].subtask.id == "\x1facme\x1fr1/intent/local/0"
        assert found.first[0].subtask.tenant == "acme"
        assert found.plan.request.id == "r1"


# Laws, over any rules, views and requests.

_SIDES = st.sampled_from(["local", "cloud", "auto"])
_NAMES = ("a", "b", "c")


@st.composite
def some_rules(draw: st.DrawFn) -> Rules:
    names = _NAMES[: draw(st.integers(1, 3))]
    steps = [
        {
            "name": name,
            "side": draw(_SIDES),
            "after": draw(st.lists(st.sampled_from(names[:index]), unique=True)) if index else [],
        }
        for index, name in enumerate(names)
    ]
    task: dict[str, object] = {"steps": steps, "scale_to_zero": draw(st.booleans())}
    sides = {step["side"] for step in steps}
    if draw(st.booleans()) and sides != {"cloud"}:
        task["local_threshold"] = draw(st.floats(0, 1))
    if draw(st.booleans()) and "auto" in sides:
        task["max_local_tokens"] = draw(st.integers(1, 20))
    return rules_of(t=task)


_FIGURES = st.builds(
    Figures,
    workers=st.integers(1, 5),
    queue=st.integers(0, 5000),
    p50_ms=st.none() | st.floats(0, 50_000),
    calibrated=st.booleans(),
    cost_per_call=st.floats(0, 10),
    max_cost=st.none() | st.floats(0, 10),
    max_batch=st.integers(1, 32),
)
_TARGETS = st.builds(
    Target, figures=_FIGURES, gate=st.sampled_from(["closed", "half_open", "slow", "failing"])
)
_VIEWS = st.builds(
    View,
    targets=st.dictionaries(
        st.tuples(st.sampled_from(["local", "cloud"]), st.sampled_from(_NAMES)), _TARGETS
    ),
)
_REQUESTS = st.builds(
    Request,
    id=st.just("r1"),
    task=st.just("t"),
    inputs=st.dictionaries(st.text(max_size=5), st.text(max_size=80) | st.integers(0, 2**32), max_size=3),
    privacy=st.sampled_from(["normal", "high"]),
    max_cost=st.none() | st.floats(0, 10),
)
_LAW = {"rules": some_rules(), "view": _VIEWS, "request": _REQUESTS, "deadline_ms": st.integers(1, 600_000)}


def with_deadline(request: Request, deadline_ms: int) -> Request:
    return msgspec.structs.replace(request, deadline_ms=deadline_ms)


@given(**_LAW)
def test_high_privacy_never_reaches_the_cloud(rules, view, request, deadline_ms):
    high = msgspec.structs.replace(request, privacy="high")
    found = decided(rules, with_deadline(high, deadline_ms), view)
    assert all(sent.side == "local" for sent in found.first)
    assert all(attempt.side == "local" for step in found.plan.steps for attempt in step.attempts)


@given(**_LAW)
def test_a_forbidden_side_never_gets_an_attempt(rules, view, request, deadline_ms):
    found = decided(rules, with_deadline(request, deadline_ms), view)
    # A refusal has decisions and no steps.
    for step, made in zip(found.plan.steps, found.plan.decisions, strict=False):
        assert not {attempt.side for attempt in step.attempts} & made.forbidden.keys()


@given(**_LAW)
def test_the_same_arguments_give_the_same_bytes(rules, view, request, deadline_ms):
    once, again = (decided(rules, with_deadline(request, deadline_ms), view) for _ in range(2))
    assert codec.encode(once.plan) == codec.encode(again.plan)
    assert [codec.encode(sent.subtask) for sent in once.first] == [
        codec.encode(sent.subtask) for sent in again.first
    ]


@given(**_LAW)
def test_a_plan_has_a_first_attempt_for_each_root_step_or_an_answer(rules, view, request, deadline_ms):
    found = decided(rules, with_deadline(request, deadline_ms), view)
    if found.plan.answer is not None:
        assert found.first == ()
        return
    roots = [step for step in found.plan.steps if not step.after]
    assert [sent.subtask.id for sent in found.first] == [
        f"r1/{step.name}/{step.attempts[0].side}/0" for step in roots
    ]
    assert len(found.plan.steps) == len(rules.tasks["t"].steps)


@given(**_LAW)
def test_attempts_keep_their_contract(rules, view, request, deadline_ms):
    found = decided(rules, with_deadline(request, deadline_ms), view)
    for step in found.plan.steps:
        assert step.attempts
        targets = [(attempt.side, attempt.capability) for attempt in step.attempts]
        assert len(set(targets)) == len(targets)
        assert step.attempts[0].triggers == ("first",)
        assert all("first" not in attempt.triggers for attempt in step.attempts[1:])
        weak = [attempt for attempt in step.attempts if "weak" in attempt.triggers]
        assert not weak or step.threshold is not None
        assert step.threshold is None or step.attempts[0].side == "local"
        assert not weak or (step.attempts[0].side, weak[0].side) == ("local", "cloud")


@given(**_LAW)
def test_a_plan_survives_the_wire(rules, view, request, deadline_ms):
    made = decided(rules, with_deadline(request, deadline_ms), view).plan
    assert codec.decode(codec.encode(made), Plan) == made


def test_an_attempt_is_what_the_contract_says():
    found = planned(AUTO, view_of())
    assert found.plan.steps[0].attempts[0] == Attempt(side="local", triggers=("first",), capability="intent")
