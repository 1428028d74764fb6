"""Backtests: identities, who moves, what it costs, how long it takes, what feedback tells, budgets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgeway.backtest import Contender, Traffic, backtest, by_scoped_id
from edgeway.backtest_report import MOVED, Report, Row
from edgeway.explain_record import Setting
from edgeway.explain_registry import assumed, view_of
from edgeway.recorded import Recorded, parse_recorded
from schemas.cards import Card, Heartbeat, Live, Offer
from schemas.messages import Feedback
from schemas.rules import parse_rules
from streams.registry import View
from streams.router.planner import Planner

DAY = 86_400_000


def contender(name: str = "rules", view: View | None = None, **said: Any) -> Contender:
    file = {"builtin": False, "privacy": {"detectors": []}, **said}
    rules = parse_rules(json.dumps(file).encode())
    setting = Setting(assumed(rules) if view is None else view, "assumed", 0)
    return Contender(name, Planner(rules), setting)


def threshold(value: float, **more: Any) -> Contender:
    return contender(f"at {value}", tasks={"intent": {"capability": "ask", "local_threshold": value}}, **more)


def record(number: int, confidence: float | None = None, **said: Any) -> Recorded:
    """One request that the edge answered, or below 0.9 the cloud, with its attempts."""
    name = f"r{number}"
    line: dict[str, Any] = {"request": {"id": name, "task": "intent", "text": "x"}, "at": number}
    if confidence is not None:
        side = "local" if confidence >= 0.9 else "cloud"
        line["attempts"] = [{"step": "intent", "side": "local", "confidence": confidence, "service_ms": 2}]
        if side == "cloud":
            line["attempts"].append({"step": "intent", "side": "cloud", "service_ms": 50, "cost": 0.5})
        line["result"] = {
            "id": name,
            "status": "ok",
            "task": "intent",
            "sides": {"intent": side},
            "cost": 0.5 if side == "cloud" else 0.0,
            "decisions": [{"step": "intent", "side": "local", "rule": "score", "threshold": 0.9}],
            "privacy": {"level": "normal"},
        }
    found = parse_recorded(number, json.dumps(line | said).encode())
    assert isinstance(found, Recorded), found
    return found


def compared(
    records: Sequence[Recorded],
    old: Contender | None,
    new: Contender,
    feedback: Sequence[Feedback] = (),
) -> Report:
    traffic = Traffic(lambda: records, lambda: sorted(records, key=lambda each: each.at), lambda: 0)
    return backtest(traffic, old, new, by_scoped_id(feedback))


RECORDS = [record(number, confidence) for number, confidence in enumerate([0.99, 0.95, 0.8, 0.3], 1)]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.none() | st.floats(0, 1), st.sampled_from([None, "right", "wrong"])), max_size=12),
    st.floats(0, 1),
    st.none() | st.floats(0.1, 2),
)
def test_the_same_rules_twice_change_nothing(
    said: list[tuple[float | None, str | None]], value: float, per_day: float | None
) -> None:
    records = [
        record(n, confidence, **({"feedback": {"id": f"r{n}", "verdict": verdict}} if verdict else {}))
        for n, (confidence, verdict) in enumerate(said, 1)
    ]
    budget = {} if per_day is None else {"budget": {"per_day": per_day}}
    rules = threshold(value, prices={"cloud/ask": {"per_call": 0.5}}, **budget)
    report = compared(records, rules, rules)
    total = report.total
    assert (total.requests, total.moved) == (len(records), 0.0)
    assert not set(total.moves) & set(MOVED)
    for pair in (total.cost, total.bound, total.refused, total.over_budget, total.quality.share):
        assert pair.old == pair.new
    for pair in (total.latency_ms.p50, total.latency_ms.p95):
        assert pair.old == pair.new
    assert (total.may_leave_now, total.must_stay_now, report.old.most_spent_a_day) == (
        0,
        0,
        report.new.most_spent_a_day,
    )
    json.loads(msgspec.json.encode(report))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.none() | st.floats(0, 1), min_size=1, max_size=12), st.floats(0, 1), st.floats(0, 1))
def test_steps_add_up_and_the_way_back_is_the_reverse(
    said: list[float | None], one: float, other: float
) -> None:
    records = [record(n, confidence) for n, confidence in enumerate(said, 1)]
    there = compared(records, threshold(one), threshold(other)).total
    back = compared(records, threshold(other), threshold(one)).total
    assert sum(there.moves.values()) == there.steps == len(records)
    for move, reverse in (("local_to_cloud", "cloud_to_local"), ("stays_local", "stays_local")):
        assert there.moves.get(move, 0) == back.moves.get(reverse, 0)
    assert (there.cost.old, there.cost.new) == (back.cost.new, back.cost.old)
    if one <= other:
        assert "cloud_to_local" not in there.moves


def test_a_stricter_threshold_moves_what_lies_between() -> None:
    report = compared(RECORDS, threshold(0.9), threshold(0.97))
    total = report.total
    assert total.moves == {"local_to_cloud": 1, "stays_cloud": 2, "stays_local": 1}
    assert total.first == {"stays_local": 4}
    assert (total.moved, total.unsure) == (0.25, 0)
    assert total.examples == {"local_to_cloud": ["r2"]}
    assert (total.cost.old, total.cost.new) == (1.0, 1.5)
    assert (total.latency_ms.p50.old, total.latency_ms.p50.new) == (2.0, 52.0)
    assert [(row.target, row.answers, row.mean_cost) for row in report.targets] == [
        ("cloud/ask", 2, 0.5),
        ("local/ask", 4, 0.0),
    ]


def test_who_helped_where_the_first_failed_would_help_again() -> None:
    failed = [
        {"step": "intent", "side": "local", "failed": True},
        {"step": "intent", "side": "cloud", "service_ms": 50, "cost": 0.5},
    ]
    helped = record(1, 0.1, attempts=failed)
    rules = contender(tasks={"intent": {"capability": "ask"}})
    total = compared([helped], rules, rules).total
    assert (total.moves, total.cost.new) == ({"stays_cloud": 1}, 0.5)
    alone = contender(tasks={"intent": {"steps": [{"name": "intent", "capability": "ask", "side": "local"}]}})
    assert compared([helped], rules, alone).total.moves == {"cloud_to_local": 1}


def test_against_what_was_recorded() -> None:
    report = compared([*RECORDS, record(9)], None, threshold(0.5))
    assert (report.old.name, report.old.rules) == ("recorded", None)
    assert (report.records.read, report.records.compared, report.records.without_result) == (5, 4, 1)
    assert report.total.moves == {"cloud_to_local": 1, "stays_cloud": 1, "stays_local": 2}
    assert (report.total.cost.old, report.total.cost.new) == (1.0, 0.5)


def test_without_a_confidence_the_recorded_decision_tells() -> None:
    def bare(number: int, side: str, **said: Any) -> Recorded:
        whole = record(number, 0.99 if side == "local" else 0.1)
        assert whole.result is not None
        result = json.loads(msgspec.json.encode(whole.result)) | {"timings": {}} | said
        return record(number, result=result)

    beneath, above = bare(1, "cloud"), bare(2, "local")
    stricter = compared([beneath, above], threshold(0.9), threshold(0.95)).total
    assert stricter.moves == {"stays_cloud": 1, "stays_local": 1}
    assert stricter.unsure == 1, "whether the edge was sure enough is not known of the second"
    milder = compared([beneath, above], threshold(0.9), threshold(0.5)).total
    assert (milder.moves, milder.unsure) == ({"stays_cloud": 1, "stays_local": 1}, 1)
    nothing = compared([record(1)], threshold(0.9), threshold(0.5)).total
    assert (nothing.moves, nothing.unsure) == ({"stays_local": 1}, 1)


def test_times_come_from_the_registry_where_none_are_recorded() -> None:
    card = Card(capability="ask", side="local", version="1", model="m")
    beats = [Heartbeat(worker="w", offers=(Offer(card=card, live=Live(p50_ms=10.0, p90_ms=30.0, served=9)),))]
    old = threshold(0.9)
    view = view_of(beats, old.planner.rules, 0)
    report = compared([record(1)], old._replace(setting=Setting(view, "given", 0)), threshold(0.9, view=view))
    assert report.total.latency_ms.requests == 1
    assert 10.0 <= (report.total.latency_ms.p50.old or 0) <= 30.0
    assert compared([record(1)], old, old).total.latency_ms.p50.old is None


def right(number: int, verdict: Any) -> Feedback:
    return Feedback(id=f"r{number}", verdict=verdict)


def test_feedback_on_unmoved_requests_is_their_own() -> None:
    quality = compared(
        RECORDS, threshold(0.9), threshold(0.9), [right(1, "right"), right(4, "wrong")]
    ).total.quality
    assert (quality.requests, quality.share.old, quality.share.new) == (2, 0.5, 0.5)
    assert (quality.estimated, quality.unknown) == (0, 2)


def test_recorded_feedback_is_told_by_side_and_bucket() -> None:
    report = compared(RECORDS, threshold(0.9), threshold(0.9), [right(1, "right"), right(4, "wrong")])
    assert [(row.sides["intent"], row.confidence, row.share, row.samples) for row in report.judged] == [
        ("cloud", None, 0.0, 1),
        ("cloud", (0.0, 0.5), 0.0, 1),
        ("local", None, 1.0, 1),
        ("local", (0.99, 1.0), 1.0, 1),
    ]


def test_a_moved_request_is_judged_by_others_of_its_bucket_or_not_at_all() -> None:
    moved = record(2, 0.96)
    quality = compared([moved], threshold(0.9), threshold(0.97), [right(2, "right")]).total.quality
    assert (quality.requests, quality.unknown, quality.unknown_moved) == (0, 1, 1)
    other = record(3, 0.96)
    assert other.result is not None
    escalated = other._replace(result=msgspec.structs.replace(other.result, sides={"intent": "cloud"}))
    said = [right(2, "right"), right(3, "wrong")]
    quality = compared([moved, escalated], threshold(0.9), threshold(0.97), said).total.quality
    assert (quality.requests, quality.unknown) == (2, 0)
    assert (quality.share.old, quality.share.new) == (1.0, 0.0)
    assert (quality.estimated, quality.least_samples) == (2, 1)


def test_a_cached_answer_tells_nothing_of_the_targets() -> None:
    kept = record(1, 0.99)
    assert kept.result is not None
    kept = kept._replace(result=msgspec.structs.replace(kept.result, cached=True), attempts=())
    report = compared([kept], threshold(0.9), threshold(0.9))
    assert (report.records.cached, report.targets) == (1, [])


def test_privacy_changes_are_counted_and_named() -> None:
    tasks = {"intent": {"capability": "ask"}}
    old = contender(tasks=tasks)
    new = contender(tasks={"intent": {**tasks["intent"], "privacy": "high"}})
    stays = compared(RECORDS, old, new).total
    assert (stays.must_stay_now, stays.may_leave_now) == (4, 0)
    assert stays.examples["must_stay_now"] == ["r1", "r2", "r3", "r4"]
    assert compared(RECORDS, new, old).total.may_leave_now == 4
    assert compared(RECORDS, None, new).total.must_stay_now == 4


def test_refusals_and_tasks() -> None:
    old = contender(tasks={"intent": {"capability": "ask"}})
    new = contender(tasks={"other": {"capability": "ask"}})
    report = compared(RECORDS, old, new)
    assert report.total.moves == {"newly_refused": 4}
    assert (report.total.refused.old, report.total.refused.new) == (0, 4)
    assert compared(RECORDS, new, old).total.moves == {"newly_answered": 4}
    assert compared(RECORDS, new, new).total.moves == {"still_refused": 4}
    assert list(report.tasks) == ["intent"]


def test_steps_that_come_and_go() -> None:
    def steps(*names: str) -> Contender:
        return contender(tasks={"intent": {"steps": [{"name": name, "side": "local"} for name in names]}})

    assert compared(RECORDS[:1], steps("a", "b"), steps("b", "c")).total.moves == {
        "added": 1,
        "dropped": 1,
        "stays_local": 1,
    }


@pytest.mark.parametrize(("per_day", "over"), [(0.4, 3), (0.5, 2), (1.0, 1), (1.5, 0)])
def test_a_days_ceiling_in_order_of_time(per_day: float, over: int) -> None:
    cloud = {"intent": {"steps": [{"name": "intent", "capability": "ask", "side": "cloud"}]}}
    prices = {"cloud/ask": {"per_call": 0.5}}
    old = contender(tasks=cloud, prices=prices)
    new = contender(tasks=cloud, prices=prices, budget={"per_day": per_day})
    records = [record(number)._replace(at=DAY + number) for number in (3, 1, 2)]
    records.append(record(4)._replace(at=2 * DAY))
    total = compared(records, old, new).total
    # The next day has a ceiling of its own.
    expected = over + (1 if per_day < 0.5 else 0)
    assert (total.over_budget.old, total.over_budget.new) == (0, expected)
    assert total.moves.get("newly_refused", 0) == expected
    if expected and per_day >= 0.5:
        assert total.examples["newly_refused"] == ["r2", "r3"][-over:]


def test_a_ceiling_of_a_tenant() -> None:
    said: dict[str, Any] = {
        "tasks": {"intent": {"steps": [{"name": "intent", "capability": "ask", "side": "cloud"}]}},
        "prices": {"cloud/ask": {"per_call": 0.5}},
    }
    new = contender(budget={"per_tenant": 0.5}, tenants={"rich": {"per_day": 5}}, **said)

    def asked(number: int, tenant: str | None) -> Recorded:
        request = {"id": f"r{number}", "task": "intent", **({"tenant": tenant} if tenant else {})}
        found = parse_recorded(number, json.dumps({"request": request, "at": number}).encode())
        assert isinstance(found, Recorded)
        return found

    records = [asked(n, tenant) for n, tenant in enumerate(["poor", "poor", "rich", "rich", None, None], 1)]
    total: Row = compared(records, contender(**said), new).total
    assert total.examples["newly_refused"] == ["r2"]
