from __future__ import annotations

import msgspec
import pytest

from schemas.messages import Verdict
from schemas.rules import TaskRule
from streams.registry import Target
from streams.router import constraints
from streams.router.constraints import CONSTRAINTS, Case, Rule, asked, examine
from tests.helpers.routing import MEASURED, UNMEASURED

HIGH = Verdict(level="high", reasons=("declared",))


def case(**fields: object) -> Case:
    given: dict[str, object] = {
        "task": TaskRule(),
        "verdict": Verdict(),
        "left_ms": 1000,
        "local": Target(figures=MEASURED),
        "cloud": Target(figures=MEASURED),
        **fields,
    }
    return Case(**given)  # type: ignore[arg-type]


def target(gate: str = "closed", **figures: object) -> Target:
    return Target(figures=msgspec.structs.replace(MEASURED, **figures), gate=gate)  # type: ignore[arg-type]


def test_an_easy_case_meets_none():
    assert examine(case(), asked(CONSTRAINTS)).reasons == {}


def test_privacy():
    assert list(constraints.privacy(case(verdict=HIGH))) == ["cloud"]
    assert list(constraints.privacy(case())) == []


def test_no_live_capability():
    assert list(constraints.live(case(local=None))) == ["local"]
    assert list(constraints.live(case(cloud=None))) == ["cloud"]
    assert list(constraints.live(case(local=None, cloud=None))) == ["local", "cloud"]


def test_scale_to_zero_needs_no_beat():
    assert list(constraints.live(case(task=TaskRule(scale_to_zero=True), local=None, cloud=None))) == []


def test_breaker():
    assert list(constraints.failing(case(local=target("failing")))) == ["local"]
    assert list(constraints.failing(case(local=target("slow"), cloud=target("half_open")))) == []
    assert list(constraints.slow(case(cloud=target("slow")))) == ["cloud"]
    assert list(constraints.slow(case(local=target("slow"), cloud=target("slow")))) == ["local", "cloud"]
    assert list(constraints.away(case(local=target("closed"), cloud=target("away")))) == ["cloud"]
    assert list(constraints.away(case(local=target("slow"), cloud=target("failing")))) == []
    assert examine(case(cloud=target("away")), asked(CONSTRAINTS)).firmly == {"cloud"}


def test_max_local_tokens():
    inputs = {"text": "one two three four"}
    assert list(constraints.long_input(case(max_tokens=3, inputs=inputs))) == ["local"]
    assert list(constraints.long_input(case(max_tokens=4, inputs=inputs))) == []
    assert list(constraints.long_input(case(inputs=inputs))) == []
    assert list(constraints.long_input(case(max_tokens=3, inputs={"text": "生成财报"}))) == ["local"]


@pytest.mark.parametrize(("left_ms", "closed"), [(20, []), (19, ["local"]), (9, ["local", "cloud"])])
def test_deadline_counts_queue_and_service(left_ms, closed):
    busy = target(queue=1, max_batch=1)
    assert list(constraints.deadline(case(left_ms=left_ms, local=busy))) == closed


def test_backlog_counts_the_queue_alone():
    busy = target(queue=5, max_batch=1)
    assert list(constraints.backlog(case(left_ms=49, cloud=busy))) == ["cloud"]
    assert list(constraints.backlog(case(left_ms=50, cloud=busy))) == []


def test_what_is_not_measured_is_never_late():
    unmeasured = Target(figures=msgspec.structs.replace(UNMEASURED, queue=1000))
    assert list(constraints.deadline(case(left_ms=1, local=unmeasured, cloud=unmeasured))) == []


def test_all_reasons_are_named_in_order():
    found = examine(case(verdict=HIGH, cloud=None, local=target("slow")), asked(CONSTRAINTS))
    assert found.reasons == {"cloud": ("privacy", "no_live_capability"), "local": ("breaker_slow",)}
    assert found.firmly == {"cloud"}


def test_a_rule_of_ones_own():
    def never(_: Case) -> list[constraints.Side]:
        return ["cloud"]

    assert examine(case(), asked([Rule("budget", never)])).reasons == {"cloud": ("budget",)}
