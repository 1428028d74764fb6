"""What each rule, constraint and verdict makes of a request."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from schemas import codec
from schemas.messages import Claim, Examination, Request, Verdict
from schemas.rules import Rules, parse_rules
from streams.budget.ports import GRACE_MS
from streams.privacy.clearance import Forbidden
from streams.registry import Figures, Target, View
from streams.router import Considered, Planned, Planner
from streams.router.outputs import outputs_of
from tests.helpers.routing import (
    MEASURED,
    NOW,
    Words,
    admitted_of,
    decided,
    live_view,
    record_in,
    ruled,
    rules_of,
    topic_of,
    view_of,
)

CALIBRATED = msgspec.structs.replace(MEASURED, calibrated=True)
PAID = msgspec.structs.replace(MEASURED, cost_per_call=0.5, max_cost=0.5)
AUTO = rules_of(intent={})


def request(**fields: Any) -> Request:
    return Request(**{"id": "r1", "task": "intent", "inputs": {"text": "ask Ann Lee"}, **fields})


def figures(**fields: Any) -> Figures:
    return msgspec.structs.replace(MEASURED, **fields)


def tried(found: Planned, step: int = 0) -> list[tuple[str, str]]:
    return [(attempt.side, attempt.capability) for attempt in found.plan.steps[step].attempts]


def closed(found: Planned, step: int = 0) -> dict[str, tuple[str, ...]]:
    return found.plan.decisions[step].forbidden


def code_of(found: Planned) -> str:
    answer = found.plan.answer
    assert answer is not None
    assert answer.error is not None
    assert found.first == ()
    assert found.reservations == ()
    return answer.error.code


class TestVerdict:
    def test_a_tenant_and_a_task_may_raise_it(self):
        rules = ruled({"intent": {}, "secret": {"privacy": "high"}}, tenants={"clinic": {"privacy": "high"}})
        view = live_view(rules)
        for fields, reasons in (
            ({}, ()),
            ({"tenant": "clinic"}, ("tenant",)),
            ({"task": "secret"}, ("task",)),
            ({"task": "secret", "tenant": "clinic", "privacy": "high"}, ("declared", "tenant", "task")),
        ):
            found = decided(rules, request(**fields), view)
            assert found.plan.request.privacy.reasons == reasons
            assert [sent.side for sent in found.first] == ["local"]
            assert closed(found) == ({"cloud": ("privacy",)} if reasons else {})

    def test_what_is_declared_is_never_masked(self):
        rules = ruled({"intent": {}}, tenants={"clinic": {"privacy": "high"}})
        examiner = Words(maskable=["Ann Lee"])
        found = decided(rules, request(tenant="clinic"), live_view(rules), examiner=examiner)
        assert found.plan.request.privacy == Verdict(level="high", reasons=("tenant",))
        assert found.plan.mask == {}

    def test_what_is_found_stays_local(self):
        found = decided(AUTO, request(), view_of(local=CALIBRATED), examiner=Words(["Ann Lee"]))
        assert tried(found) == [("local", "intent")]
        assert found.plan.request.privacy == Verdict(level="high", reasons=("person",))

    def test_a_refusal_carries_the_verdict(self):
        rules = rules_of(intent={"side": "cloud"})
        found = decided(rules, request(), view_of(), examiner=Words(["Ann Lee"]))
        assert code_of(found) == "no_placement"
        assert found.plan.answer.privacy == Verdict(level="high", reasons=("person",))
        unknown = decided(rules, request(task="nothing"), view_of(), examiner=Words(["Ann Lee"]))
        assert unknown.plan.answer.privacy.level == "high"

    def test_the_planner_and_the_verdict_in_two_steps_are_decide(self):
        planner = Planner(AUTO, examiner=Words(["Ann Lee"]))
        admitted = admitted_of(request())
        considered = planner.consider(admitted, NOW)
        assert isinstance(considered, Considered)
        view = view_of()
        assert planner.plan(considered, view, NOW) == planner.decide(admitted, view, NOW)


class TestMasks:
    RULES = rules_of(intent={"side": "cloud"})
    EXAMINER = Words(maskable=["Ann Lee"])

    def test_the_cloud_gets_placeholders_and_the_plan_what_they_stand_for(self):
        asked = request(params={"for": "Ann Lee", "n": 3})
        found = decided(self.RULES, asked, view_of(), examiner=self.EXAMINER)
        (sent,) = found.first
        assert sent.subtask.inputs == {"text": "ask [PERSON_1]"}
        assert sent.subtask.params == {"for": "[PERSON_1]", "n": 3}
        assert sent.verdict.level == "normal"
        assert found.plan.mask == {"[PERSON_1]": "Ann Lee"}
        assert found.plan.request.privacy.masked
        cloud = [output for output in outputs_of(found) if topic_of(output) == "cloud.intent"]
        assert b"Ann Lee" not in record_in(cloud[0]).value

    def test_a_local_step_gets_what_was_sent(self):
        rules = rules_of(intent={"side": "local"})
        found = decided(rules, request(), view_of(), examiner=self.EXAMINER)
        assert found.first[0].subtask.inputs == {"text": "ask Ann Lee"}
        assert found.plan.mask == {}
        assert found.plan.examination is None

    def test_a_mask_that_hides_too_little_closes_the_cloud(self):
        class Leaky(Words):
            def mask(self, *parts: Any) -> dict[str, str]:
                return {"[PERSON_1]": "nothing of the text"}

        found = decided(self.RULES, request(), view_of(), examiner=Leaky(maskable=["Ann Lee"]))
        assert code_of(found) == "no_placement"

    def test_a_mask_that_fails_closes_the_cloud(self):
        class Broken(Words):
            def mask(self, *parts: Any) -> dict[str, str]:
                raise RuntimeError("no")

        found = decided(self.RULES, request(), view_of(), examiner=Broken(maskable=["Ann Lee"]))
        assert code_of(found) == "no_placement"

    def test_a_later_cloud_attempt_of_a_masked_request_is_examined(self):
        found = decided(AUTO, request(), view_of(local=CALIBRATED), examiner=self.EXAMINER)
        assert tried(found) == [("local", "intent"), ("cloud", "intent")]
        assert found.first[0].subtask.inputs == {"text": "ask Ann Lee"}
        assert found.plan.mask == {"[PERSON_1]": "Ann Lee"}
        assert found.plan.examination == Examination(detectors=())

    def test_a_subtask_under_a_high_verdict_is_never_cleared(self):
        found = decided(self.RULES, request(), view_of())
        forged = found.first[0]._replace(verdict=Verdict(level="high"))
        with pytest.raises(Forbidden):
            outputs_of(found._replace(first=(forged,)))


def test_a_later_step_in_the_cloud_is_examined():
    steps = [{"name": "a", "side": "local"}, {"name": "b", "after": ["a"], "inputs": {"t": "steps.a"}}]
    for side, examination in (("cloud", Examination(detectors=())), ("local", None)):
        rules = rules_of(intent={"steps": [steps[0], {**steps[1], "side": side}]})
        assert decided(rules, request(), live_view(rules)).plan.examination == examination


class TestMoney:
    def test_what_may_be_paid_is_reserved(self):
        found = decided(AUTO, request(deadline_ms=2000, tenant="t"), view_of(local=CALIBRATED, cloud=PAID))
        (reservation,) = found.reservations
        assert reservation.subtask == "\x1ft\x1fr1/intent/cloud/1"
        assert (reservation.tenant, reservation.cost) == ("t", 0.5)
        assert reservation.expires == NOW + 2000 + GRACE_MS
        assert found.plan.decisions[0].reserved == 0.5

    @pytest.mark.parametrize("purse", ["spent", "away"])
    def test_without_budget_what_costs_is_closed(self, purse):
        found = decided(AUTO, request(), view_of(local=CALIBRATED, cloud=PAID), purse)
        assert tried(found) == [("local", "intent")]
        assert closed(found) == {"cloud": ("budget",)}
        assert found.reservations == ()
        assert tried(decided(AUTO, request(), view_of(), purse))[1] == ("cloud", "intent")

    def test_prices_of_the_rules_stand_over_the_cards(self):
        rules = ruled({"intent": {}}, prices={"cloud/intent": {"per_call": 0.2}})
        found = decided(rules, request(), view_of(local=CALIBRATED, cloud=PAID))
        assert found.plan.steps[0].attempts[1].max_cost == 0.2
        tokens = {"cloud/intent": {"per_call": 0.1, "per_1k_tokens": 1.0, "max_tokens": 500}}
        rules = ruled({"intent": {}}, prices=tokens)
        assert decided(rules, request(), view_of(local=CALIBRATED)).reservations[0].cost == pytest.approx(0.6)

    @pytest.mark.parametrize("price", [{"cost_per_call": 0.1}, {"cost_per_token": 0.1}])
    def test_what_costs_without_a_bound_is_closed(self, price):
        found = decided(AUTO, request(), view_of(cloud=figures(max_cost=None, **price)))
        assert closed(found) == {"cloud": ("unknown_cost",)}
        assert tried(decided(AUTO, request(), view_of(cloud=figures(max_cost=None))))[1][0] == "cloud"

    def test_a_paid_target_that_starts_on_demand_needs_a_price(self):
        task = {"side": "cloud", "scale_to_zero": True}
        budget = {"budget": {"per_day": 5.0}}
        assert code_of(decided(ruled({"intent": task}, **budget), request(), View())) == "no_placement"
        assert decided(ruled({"intent": task}), request(), View()).first[0].side == "cloud"
        priced = ruled({"intent": task}, prices={"cloud/intent": {"per_call": 0.1}}, **budget)
        assert decided(priced, request(), View()).reservations[0].cost == 0.1

    def test_max_cost_is_a_ceiling_of_the_request(self):
        found = decided(AUTO, request(max_cost=0.4), view_of(local=CALIBRATED, cloud=PAID))
        assert closed(found) == {"cloud": ("max_cost",)}
        assert decided(AUTO, request(max_cost=0.5), view_of(local=CALIBRATED, cloud=PAID)).reservations

    def test_steps_share_what_a_request_may_cost(self):
        rules = rules_of(intent={"steps": [{"name": "a", "side": "cloud"}, {"name": "b", "side": "cloud"}]})
        view = live_view(rules, PAID)
        assert code_of(decided(rules, request(max_cost=0.9), view)) == "no_placement"
        assert sum(each.cost for each in decided(rules, request(max_cost=1.0), view).reservations) == 1.0

    @pytest.mark.parametrize("costs", [(0.041, 0.006), (0.1, 0.2), (0.1, 0.7), (0.3, 0.6)])
    def test_what_just_fits_fits(self, costs):
        total = float(Decimal(str(costs[0])) + Decimal(str(costs[1])))
        steps = [{"name": name, "capability": name, "side": "cloud"} for name in "ab"]
        prices = {f"cloud/{name}": {"per_call": cost} for name, cost in zip("ab", costs, strict=True)}
        rules = ruled({"intent": {"steps": steps}}, prices=prices)
        assert decided(rules, request(max_cost=total), live_view(rules)).first
        assert code_of(decided(rules, request(max_cost=total - 1e-6), live_view(rules))) == "no_placement"
        other = ruled(
            {"intent": {"steps": [{"name": "a", "alternatives": ["b"], "side": "cloud"}]}},
            prices=prices,
        )
        assert len(decided(other, request(max_cost=total), live_view(other)).plan.steps[0].attempts) == 2

    def test_what_may_only_be_needed_later_never_starves_what_must_run(self):
        rules = rules_of(intent={"steps": [{"name": "a"}, {"name": "b", "side": "cloud"}]})
        view = View(
            targets={
                ("local", "a"): Target(figures=CALIBRATED),
                ("cloud", "a"): Target(figures=PAID),
                ("cloud", "b"): Target(figures=PAID),
            }
        )
        found = decided(rules, request(max_cost=0.6), view)
        assert [tried(found, 0), tried(found, 1)] == [[("local", "a")], [("cloud", "b")]]
        assert len(tried(decided(rules, request(max_cost=1.0), view), 0)) == 2

    def test_the_score_measures_a_price_by_what_is_left(self):
        planner = Planner(AUTO)
        considered = planner.consider(admitted_of(request()), NOW)
        assert isinstance(considered, Considered)
        view = view_of(cloud=PAID)
        poor = planner.plan(considered, view, NOW, left_budget=1.0)
        rich = planner.plan(considered, view, NOW, left_budget=100.0)
        costs = [each.plan.decisions[0].factors["cloud"]["cost"].value for each in (poor, rich)]
        assert costs == [0.5, 0.995]


class TestSpeed:
    def test_a_side_that_keeps_the_latency_is_preferred(self):
        rules = rules_of(intent={"latency_ms": 100})
        found = decided(rules, request(), view_of(local=figures(p90_ms=150.0, calibrated=True)))
        assert closed(found) == {"local": ("latency",)}
        assert tried(found) == [("cloud", "intent")]

    def test_where_none_keeps_it_it_gives_way(self):
        rules = rules_of(intent={"latency_ms": 100})
        slow = figures(p90_ms=150.0)
        found = decided(rules, request(), view_of(local=slow, cloud=slow))
        assert found.plan.decisions[0].note == "latency gave way: no side was left"

    def test_max_qps_moves_a_step(self):
        view = View(
            targets={
                ("local", "intent"): Target(figures=CALIBRATED, throttled=True),
                ("cloud", "intent"): Target(figures=MEASURED),
            }
        )
        assert closed(decided(AUTO, request(), view)) == {"local": ("max_qps",)}


class TestInputSchema:
    SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}

    def test_a_side_whose_card_asks_for_more_is_closed(self):
        local = figures(input_schema={"required": ["image"]})
        found = decided(AUTO, request(), view_of(local=local))
        assert closed(found) == {"local": ("input_schema",)}

    def test_where_none_fits_the_caller_is_told_which_input(self):
        strict = figures(input_schema=self.SCHEMA)
        found = decided(AUTO, request(inputs={"text": 5}), view_of(local=strict, cloud=strict))
        assert code_of(found) == "bad_input"
        assert found.plan.answer is not None
        assert found.plan.answer.error is not None
        assert "`text`" in found.plan.answer.error.message
        assert "5" not in found.plan.answer.error.message

    def test_what_comes_from_earlier_steps_is_not_missing(self):
        steps = [{"name": "a", "side": "local"}, {"name": "b", "after": ["a"], "inputs": {"text": "steps.a"}}]
        rules = rules_of(intent={"steps": steps})
        view = View(
            targets={
                ("local", "a"): Target(figures=MEASURED),
                ("local", "b"): Target(figures=figures(input_schema=self.SCHEMA)),
            }
        )
        assert decided(rules, request(), view).plan.answer is None


class TestAlternatives:
    RULES = rules_of(intent={"steps": [{"name": "s", "capability": "a", "alternatives": ["b", "c"]}]})

    def view(self, **targets: Figures) -> View:
        return View(
            targets={
                ("local" if name[0] == "l" else "cloud", name[1]): Target(figures=of)
                for name, of in targets.items()
            }
        )

    def test_the_best_of_each_side_first_then_the_rest(self):
        view = self.view(
            la=figures(p50_ms=900.0),
            lb=figures(p50_ms=5.0),
            ca=MEASURED,
            cb=figures(cost_per_call=0.4, max_cost=0.4),
        )
        found = decided(self.RULES, request(), view)
        assert tried(found) == [("local", "b"), ("cloud", "a"), ("local", "a"), ("cloud", "b")]
        assert found.plan.decisions[0].capability == "b"
        assert [attempt.triggers for attempt in found.plan.steps[0].attempts[1:]] == [
            ("failed", "silent")
        ] * 3
        assert found.first[0].subtask.capability == "b"
        assert [each.subtask for each in found.reservations] == ["r1/s/cloud/3"]

    def test_one_that_is_well_stands_in_for_one_that_is_not(self):
        targets = {
            ("local", "a"): Target(figures=MEASURED, gate="failing"),
            ("local", "c"): Target(figures=MEASURED),
        }
        found = decided(self.RULES, request(), View(targets=targets))
        assert tried(found) == [("local", "c")]
        assert "local" not in closed(found)

    def test_of_equals_the_first_in_the_rules(self):
        found = decided(self.RULES, request(), self.view(lc=MEASURED, lb=MEASURED, la=MEASURED))
        assert tried(found) == [("local", "a"), ("local", "b"), ("local", "c")]

    def test_none_left(self):
        assert code_of(decided(self.RULES, request(), View())) == "no_placement"

    def test_together_they_keep_to_max_cost(self):
        view = self.view(ca=PAID, cb=PAID, cc=PAID)
        found = decided(self.RULES, request(max_cost=1.2), view)
        assert tried(found) == [("cloud", "a"), ("cloud", "b")]


class Chance:
    def __init__(self, chance: float | None) -> None:
        self.chance = chance

    def expected(self, inputs: Any) -> float | None:
        return self.chance


@pytest.mark.parametrize(
    ("chance", "rule", "sides"),
    [
        (0.2, "predicted_weak", ["cloud", "local"]),
        (0.8, "confidence_first", ["local", "cloud"]),
        (None, "confidence_first", ["local", "cloud"]),
    ],
)
def test_a_predictor_spares_answers_that_would_be_refused(chance, rule, sides):
    found = decided(AUTO, request(), view_of(local=CALIBRATED), predictors={"intent": Chance(chance)})
    decision = found.plan.decisions[0]
    assert (decision.rule, decision.expected) == (rule, chance)
    assert [side for side, _ in tried(found)] == sides


def test_a_predictor_that_fails_says_nothing():
    class Broken(Chance):
        def expected(self, inputs: Any) -> float | None:
            raise ValueError("no")

    found = decided(AUTO, request(), view_of(local=CALIBRATED), predictors={"intent": Broken(None)})
    assert found.plan.decisions[0].rule == "confidence_first"


def test_a_predictor_opens_no_closed_side():
    predictors = {"intent": Chance(0.0)}
    found = decided(AUTO, request(privacy="high"), view_of(local=CALIBRATED), predictors=predictors)
    assert tried(found) == [("local", "intent")]


def test_a_tenant_has_a_default_deadline_and_a_task_one_for_the_others():
    tenants = {"t": {"deadline_ms": 700}}
    rules = ruled({"intent": {}, "other": {"deadline_ms": 900}}, tenants=tenants)

    def allowed(**fields: Any) -> int:
        return decided(rules, request(**fields), live_view(rules)).plan.request.deadline - NOW

    assert allowed() == 30_000
    assert allowed(tenant="t") == 700
    assert allowed(tenant="t", task="other") == 700
    assert allowed(tenant="u", task="other") == 900
    assert allowed(tenant="t", task="other", deadline_ms=50) == 50


class TestKeys:
    CACHEABLE = msgspec.structs.replace(MEASURED, cacheable=True, versions=("1",))

    def key(self, rules: Rules, view: View, **fields: Any) -> str | None:
        planner = Planner(rules)
        found = planner.find(admitted_of(request(**fields)), NOW)
        assert not isinstance(found, Planned)
        return planner.keyed(found, view).key

    def test_an_answer_may_be_kept_where_every_capability_says_so(self):
        view = view_of(local=self.CACHEABLE, cloud=self.CACHEABLE)
        assert self.key(AUTO, view) is not None
        assert self.key(AUTO, view_of(local=self.CACHEABLE)) is None
        assert self.key(AUTO, view, privacy="high") is None

    def test_the_rules_have_the_last_word(self):
        view = view_of(local=self.CACHEABLE, cloud=self.CACHEABLE)
        assert self.key(rules_of(intent={"cache": False}), view) is None
        silent = view_of(local=figures(versions=("1",)), cloud=figures(versions=("1",)))
        assert self.key(AUTO, silent) is None
        assert self.key(rules_of(intent={"cache": True}), silent) is not None
        assert self.key(ruled({"intent": {}}, cache_s=0), view) is None

    def test_other_versions_other_keys(self):
        new = msgspec.structs.replace(self.CACHEABLE, versions=("2",))
        keys = {
            self.key(AUTO, view_of(local=self.CACHEABLE, cloud=self.CACHEABLE)),
            self.key(AUTO, view_of(local=new, cloud=self.CACHEABLE)),
            self.key(AUTO, view_of(local=new, cloud=self.CACHEABLE), tenant="t"),
            self.key(AUTO, view_of(local=new, cloud=self.CACHEABLE), inputs={"text": "x"}),
        }
        assert len(keys) == 4

    def test_only_a_plan_under_a_normal_verdict_carries_it(self):
        planner = Planner(AUTO, examiner=Words(["Ann Lee"]))
        view = view_of(local=self.CACHEABLE, cloud=self.CACHEABLE)
        for text, kept in (("ask Ann Lee", False), ("ask someone", True)):
            found = planner.find(admitted_of(request(inputs={"text": text})), NOW)
            assert not isinstance(found, Planned)
            made = planner.plan(planner.examine(planner.keyed(found, view)), view, NOW)
            assert (made.plan.cache is not None) is kept


def test_an_object_elsewhere_is_refused():
    claim = Claim(dataref="s3://b/k", sha256="0", size=1)
    assert code_of(decided(AUTO, request(claim=claim), view_of())) == "object_missing"


def test_the_same_arguments_give_the_same_bytes():
    examiner = Words(maskable=["Ann Lee"])
    made = [decided(AUTO, request(), view_of(cloud=PAID), examiner=examiner) for _ in range(2)]
    assert codec.encode(made[0].plan) == codec.encode(made[1].plan)
    assert made[0].reservations == made[1].reservations


class TestDetectorsOfATask:
    RULES = {
        "report": {"capability": "report", "ignore": ["date"]},
        "letter": {"capability": "letter"},
        "open": {"capability": "open", "detectors": []},
    }

    @pytest.mark.parametrize(
        ("task", "text", "level"),
        [
            ("letter", "signed on 3 March 2024", "high"),
            ("report", "signed on 3 March 2024", "normal"),
            ("report", "signed on 3 March 2024 by ann@example.com", "high"),
            ("open", "signed on 3 March 2024 by ann@example.com", "normal"),
        ],
    )
    def test_stand_for_those_of_all_tasks(self, task, text, level):
        planner = Planner(
            parse_rules(msgspec.json.encode({"tasks": self.RULES, "privacy": {"detectors": ["formats"]}}))
        )
        considered = planner.consider(admitted_of(request(task=task, inputs={"text": text})), NOW)
        assert considered.info.privacy.level == level

    def test_hold_for_a_request_that_its_decomposer_fails_on(self):
        def fails(request):
            raise ValueError

        said = {"tasks": self.RULES, "privacy": {"detectors": ["formats"]}, "builtin": False}
        planner = Planner(
            parse_rules(msgspec.json.encode(said)), decomposers={"open": fails, "letter": fails}
        )
        for task, level in (("open", "normal"), ("letter", "high")):
            asked = request(task=task, inputs={"text": "signed on 3 March 2024"})
            refused = planner.consider(admitted_of(asked), NOW)
            assert refused.plan.answer.error.code == "decomposer_failed"
            assert refused.plan.answer.privacy.level == level
