"""Laws of the planner over any rules, views, verdicts and budgets."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas import codec
from schemas.messages import Plan, Request, Side
from schemas.rules import Rules
from streams.registry import Figures, Target, View
from streams.router import Planned, Planner
from streams.router.outputs import outputs_of
from streams.router.prices import Prices
from tests.helpers.routing import NOW, Words, admitted_of, record_in, ruled, topic_of

CAPABILITIES = ("a", "b", "c", "d")
SIDES: tuple[Side, Side] = ("local", "cloud")
SECRET, NAME = "K-77-secret", "Ann Lee"


@st.composite
def some_rules(draw: st.DrawFn) -> Rules:
    steps: list[dict[str, Any]] = []
    for index in range(draw(st.integers(1, 3))):
        before = [step["name"] for step in steps]
        capability, *others = draw(
            st.lists(st.sampled_from(CAPABILITIES), min_size=1, max_size=3, unique=True)
        )
        step: dict[str, Any] = {"name": f"s{index}", "capability": capability, "alternatives": others}
        step["side"] = draw(st.sampled_from(["local", "cloud", "auto"]))
        step["after"] = draw(st.lists(st.sampled_from(before), unique=True)) if before else []
        if step["after"] and draw(st.booleans()):
            step["inputs"] = {"text": "inputs.text", "more": f"steps.{step['after'][0]}"}
        if draw(st.booleans()):
            step["latency_ms"] = draw(st.integers(1, 1000))
        if step["side"] == "auto" and draw(st.booleans()):
            step["local_threshold"] = draw(st.floats(0, 1))
        if draw(st.booleans()):
            step["cache"] = draw(st.booleans())
        steps.append(step)
    task: dict[str, Any] = {"steps": steps, "scale_to_zero": draw(st.booleans())}
    if all(step["side"] != "cloud" for step in steps):
        task["privacy"] = draw(st.sampled_from(["normal", "normal", "high"]))
    if task.get("privacy") == "high":
        # The rules refuse to keep answers of such a task.
        steps[:] = [{key: value for key, value in step.items() if key != "cache"} for step in steps]
    more: dict[str, Any] = {}
    if draw(st.booleans()):
        more["budget"] = {"per_day": 10.0}
    if draw(st.booleans()):
        more["tenants"] = {"t": {"privacy": draw(st.sampled_from(["normal", "high"]))}}
    used = sorted(
        {
            f"{side}/{name}"
            for step in steps
            for name in (step["capability"], *step["alternatives"])
            for side in (SIDES if step["side"] == "auto" else (step["side"],))
        }
    )
    priced = draw(st.lists(st.sampled_from(used), unique=True, max_size=2))
    more["prices"] = {name: {"per_call": draw(st.floats(0, 2))} for name in priced}
    return ruled({"t": task}, **more)


figures = st.builds(
    Figures,
    workers=st.integers(1, 5),
    queue=st.integers(0, 3000),
    p50_ms=st.none() | st.floats(0, 20_000),
    p90_ms=st.none() | st.floats(0, 20_000),
    calibrated=st.booleans(),
    cost_per_call=st.sampled_from([0.0, 0.0, 0.5]),
    cost_per_token=st.sampled_from([0.0, 0.0, 0.1]),
    max_cost=st.none() | st.floats(0, 2),
    max_batch=st.integers(1, 32),
    input_schema=st.sampled_from([{}, {"required": ["text"]}, {"properties": {"text": {"type": "integer"}}}]),
    versions=st.just(("1",)),
    cacheable=st.booleans(),
)
targets = st.builds(
    Target,
    figures=figures,
    gate=st.sampled_from(["closed", "closed", "half_open", "slow", "failing"]),
    throttled=st.booleans(),
)
views = st.builds(
    View, targets=st.dictionaries(st.tuples(st.sampled_from(SIDES), st.sampled_from(CAPABILITIES)), targets)
)
requests = st.builds(
    Request,
    id=st.just("r1"),
    task=st.just("t"),
    inputs=st.fixed_dictionaries(
        {},
        optional={
            "text": st.sampled_from(["plain", f"ask {NAME}", f"{SECRET} of {NAME}"]),
            "n": st.integers(0, 9),
        },
    ),
    params=st.sampled_from([{}, {"who": NAME}, {"key": SECRET}]),
    privacy=st.sampled_from(["normal", "normal", "normal", "high"]),
    tenant=st.sampled_from([None, "t"]),
    max_cost=st.none() | st.floats(0, 4),
    deadline_ms=st.integers(1, 600_000),
)
LAW = {
    "rules": some_rules(),
    "view": views,
    "request": requests,
    "purse": st.sampled_from(["open", "open", "spent", "away"]),
}
EXAMINER = Words(secret=[SECRET], maskable=[NAME])


def made(rules: Rules, view: View, request: Request, purse: Any, keeps: bool = True) -> Planned:
    planner = Planner(rules, examiner=EXAMINER)
    considered = planner.consider(admitted_of(request), NOW)
    if isinstance(considered, Planned):
        return considered
    return planner.plan(considered, view, NOW, purse, keeps_steps=keeps)


def attempts(found: Planned) -> list[tuple[str, str, float]]:
    return [
        (each.side, each.capability, each.max_cost) for step in found.plan.steps for each in step.attempts
    ]


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(**LAW)
def test_nothing_sensitive_goes_to_the_cloud_unmasked(rules, view, request, purse):
    found = made(rules, view, request, purse)
    verdict = found.plan.request.privacy
    if not verdict.cloud_allowed:
        assert all(side == "local" for side, _, _ in attempts(found))
    for output in outputs_of(found):
        if topic_of(output).startswith("cloud."):
            value = record_in(output).value
            assert SECRET.encode() not in value
            assert NAME.encode() not in value
    text = repr((request.inputs, request.params))
    if SECRET in text or request.privacy == "high" or rules.tasks["t"].privacy == "high":
        assert not verdict.cloud_allowed
    if found.plan.mask:
        assert verdict.masked
    later = [
        step
        for step in found.plan.steps
        if any(
            each.side == "cloud" and (step.after or (verdict.masked and index))
            for index, each in enumerate(step.attempts)
        )
    ]
    assert (found.plan.examination is not None) == bool(later)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(**LAW)
def test_a_forbidden_side_gets_no_attempt_and_each_target_one(rules, view, request, purse):
    found = made(rules, view, request, purse)
    for step, decision in zip(found.plan.steps, found.plan.decisions, strict=False):
        assert not {each.side for each in step.attempts} & decision.forbidden.keys()
        tried = [(each.side, each.capability) for each in step.attempts]
        assert len(set(tried)) == len(tried)
        assert tried
        rule = next(each for each in rules.tasks["t"].steps if each.name == step.name)
        assert {name for _, name in tried} <= {rule.capability, *rule.alternatives}
        assert rule.side == "auto" or {side for side, _ in tried} == {rule.side}


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(**LAW)
def test_every_reservation_has_its_attempt_and_every_paid_attempt_its_reservation(
    rules, view, request, purse
):
    found = made(rules, view, request, purse)
    scope = "\x1ft\x1fr1" if request.tenant else "r1"
    paid = {
        f"{scope}/{step.name}/{each.side}/{index}": each.max_cost
        for step in found.plan.steps
        for index, each in enumerate(step.attempts)
        if each.max_cost
    }
    assert {each.subtask: each.cost for each in found.reservations} == paid
    assert sum(decision.reserved for decision in found.plan.decisions if found.plan.steps) == sum(
        sum(each.max_cost for each in step.attempts) for step in found.plan.steps
    )
    if request.max_cost is not None:
        assert sum(paid.values()) <= request.max_cost + 1e-9
    if purse != "open":
        assert not paid


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(**LAW)
def test_no_attempt_may_cost_what_nobody_knows(rules, view, request, purse):
    prices = Prices(rules)
    for side, capability, most in attempts(made(rules, view, request, purse)):
        bound = prices.bound(side, capability, view.at(side, capability))  # type: ignore[arg-type]
        assert bound is not None
        assert most == bound


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(**LAW)
def test_firm_rules_hold_for_every_attempt(rules, view, request, purse):
    for side, capability, _ in attempts(made(rules, view, request, purse)):
        target = view.at(side, capability)  # type: ignore[arg-type]
        assert target is not None or rules.tasks["t"].scale_to_zero
        assert target is None or (target.gate != "failing" and not target.throttled)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(**LAW)
def test_a_plan_is_of_its_arguments_alone_and_survives_the_wire(rules, view, request, purse):
    once, again = made(rules, view, request, purse), made(rules, view, request, purse)
    assert [record_in(output).value for output in outputs_of(once)] == [
        record_in(output).value for output in outputs_of(again)
    ]
    assert codec.decode(codec.encode(once.plan), Plan) == once.plan
    assert once.plan.rules == rules.version


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(**LAW)
def test_a_high_verdict_is_never_kept(rules, view, request, purse):
    found = made(rules, view, request, purse)
    if found.plan.request.privacy.level != "normal":
        assert found.plan.cache is None
        assert all(step.cache is None for step in found.plan.steps)
