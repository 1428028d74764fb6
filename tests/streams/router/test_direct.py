"""Capabilities asked for by name: what holds for tasks holds for them."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.messages import Request
from streams.registry import View
from streams.router import Planned
from streams.router.direct import direct_tasks
from tests.helpers.routing import MEASURED, Words, decided, live_view, ruled

IN = {"text": "where is my card"}
RULES = ruled(
    {
        "summary": {"capability": "nlp/summarize", "local_threshold": 0.7},
        "home": {"capability": "nlp/intent", "side": "local"},
        "letter": {"capability": "nlp/letter", "privacy": "high"},
        "poem": {"capability": "nlp/poem", "cache": False, "scale_to_zero": True},
    },
    prices={"cloud/nlp/summarize": {"per_call": 0.5}},
)


def of(task: str, rules: Any = RULES, **fields: Any) -> Planned:
    how = {key: fields.pop(key) for key in ("examiner", "purse") if key in fields}
    purse = how.pop("purse", "open")
    return decided(rules, Request(id="r", task=task, inputs=IN, **fields), live_view(rules), purse, **how)


def error_of(planned: Planned) -> str:
    assert planned.plan.answer is not None
    assert planned.plan.answer.error is not None
    return planned.plan.answer.error.code


@pytest.mark.parametrize("side", ["local", "cloud"])
def test_one_step_on_that_side_alone(side: str) -> None:
    made = of(f"{side}/nlp/summarize")
    (step,) = made.plan.steps
    assert (step.name, step.capability) == ("summarize", "nlp/summarize")
    assert [attempt.side for attempt in step.attempts] == [side]
    assert made.plan.decisions[0].rule == "fixed_side"
    assert made.plan.request.task == f"{side}/nlp/summarize"
    assert made.first[0].subtask.inputs == IN


def test_what_no_task_uses_there_is_unknown() -> None:
    made = of("cloud/nlp/intent")
    assert error_of(made) == "unknown_capability"
    assert made.plan.answer is not None
    assert made.plan.answer.error is not None
    assert "local/nlp/intent" in made.plan.answer.error.message
    assert error_of(of("local/nlp/nothing")) == "unknown_capability"
    assert error_of(of("nlp/nothing")) == "unknown_task"


def test_privacy_budget_and_prices_hold() -> None:
    assert error_of(of("cloud/nlp/summarize", privacy="high")) == "no_placement"
    assert error_of(of("cloud/nlp/summarize", examiner=Words(secret=["card"]))) == "no_placement"
    assert error_of(of("cloud/nlp/summarize", max_cost=0.4)) == "no_placement"
    assert error_of(of("cloud/nlp/summarize", purse="spent")) == "no_placement"
    (reserved,) = of("cloud/nlp/summarize").reservations
    assert reserved.cost == 0.5


def test_naming_the_capability_leads_past_no_privacy_of_its_tasks() -> None:
    assert error_of(of("cloud/nlp/letter")) == "no_placement"
    assert of("local/nlp/letter").plan.request.privacy.reasons == ("task",)
    opened = ruled({"letter": {"capability": "x/y", "privacy": "high"}, "open": {"capability": "x/y"}})
    assert of("cloud/x/y", opened).plan.answer is None


def test_a_masked_request_goes_there_concealed() -> None:
    made = of("cloud/nlp/summarize", examiner=Words(maskable=["card"]))
    assert made.first[0].subtask.inputs == {"text": "where is my [PERSON_1]"}


def test_what_its_tasks_say_of_cache_and_demand() -> None:
    tasks = direct_tasks(RULES)
    assert (tasks["cloud/nlp/poem"].steps[0].cache, tasks["cloud/nlp/poem"].scale_to_zero) == (False, True)
    assert (tasks["cloud/nlp/summarize"].steps[0].cache, tasks["local/nlp/intent"].scale_to_zero) == (
        None,
        False,
    )
    assert "cloud/nlp/intent" not in tasks


def test_a_task_of_that_name_wins() -> None:
    rules = ruled(
        {
            "local/nlp/intent": {"capability": "nlp/other", "side": "local"},
            "home": {"capability": "nlp/intent"},
        }
    )
    assert of("local/nlp/intent", rules).plan.steps[0].capability == "nlp/other"
    assert of("cloud/nlp/intent", rules).plan.steps[0].capability == "nlp/intent"


def test_alternatives_are_asked_by_their_own_names() -> None:
    rules = ruled({"t": {"steps": [{"name": "s", "capability": "a/b", "alternatives": ["a/c"]}]}})
    assert of("local/a/c", rules).plan.steps[0].name == "c"


def test_a_dead_side_is_refused_and_the_other_not_asked() -> None:
    view = live_view(RULES, MEASURED)
    left = View(
        targets={pair: view.targets[pair] for pair in view.targets if pair != ("cloud", "nlp/summarize")}
    )
    made = decided(RULES, Request(id="r", task="cloud/nlp/summarize", inputs=IN), left)
    assert error_of(made) == "no_placement"
