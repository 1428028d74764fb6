"""Explanations: each decision and outcome in a sentence."""

from __future__ import annotations

from typing import Any

import pytest

from edgeway.explain import CONSTRAINTS as WORDS
from edgeway.explain import FAILURES, explain, of_privacy, planned
from edgeway.explain_words import DEGRADED as REASONS
from schemas.errors import ERROR_CODES
from schemas.messages import DEGRADED, Decision, Factor, Failure, Result, Verdict
from streams.router.constraints import CONSTRAINTS


def one(decision: Decision, **result: object) -> str:
    (line,) = explain(Result(id="r", status="ok", decisions=(decision,), **result))  # type: ignore[arg-type]
    return line


def test_a_score_names_both_sides_and_what_counted_most() -> None:
    decision = Decision(
        step="chart",
        side="cloud",
        rule="score",
        scores={"cloud": 0.71, "local": 0.43},
        factors={
            "cloud": {
                "latency": Factor(value=0.9, weight=0.4, source="live"),
                "cost": Factor(value=0.2, weight=0.3),
            },
            "local": {
                "latency": Factor(value=0.1, weight=0.4, source="live"),
                "cost": Factor(value=0.9, weight=0.3),
            },
        },
    )
    assert one(decision) == (
        "Step chart went to the cloud: it scored 0.71 against 0.43 for the edge, "
        "most of all for latency (0.90, measured)."
    )


def test_a_closed_side_says_why() -> None:
    decision = Decision(step="s", side="local", rule="privacy", forbidden={"cloud": ("privacy", "budget")})
    line = one(decision)
    assert line.startswith("Step s went to the edge: the other side was closed; the cloud was closed: ")
    assert "sensitive" in line
    assert "budget" in line


def test_confidence_and_escalation() -> None:
    decision = Decision(step="intent", side="local", rule="confidence_first", threshold=0.9)
    assert "below a confidence of 0.90" in one(decision, sides={"intent": "local"})
    assert "that of the cloud was taken" in one(decision, sides={"intent": "cloud"})
    assert "was taken" not in one(decision, sides={"intent": "local"})


def test_names_that_are_not_known_are_shown_as_words() -> None:
    decision = Decision(step="s", side="local", rule="moon_phase", forbidden={"cloud": ("no_stars",)})
    assert one(decision) == "Step s went to the edge: by the rule moon phase; the cloud was closed: no stars."


def test_nowhere_and_money_and_notes() -> None:
    assert one(Decision(step="s", side=None, rule="no_placement")) == "Step s could run nowhere."
    line = one(Decision(step="s", side="cloud", rule="fixed_side", reserved=0.25, note="tenant pays"))
    assert line == (
        "Step s went to the cloud: the rules name this side; it was to cost 0.25 at most (tenant pays)."
    )


def test_outcomes() -> None:
    partial = Result(
        id="r",
        status="partial",
        missing=("chart",),
        approximate=True,
        cost=0.5,
        decisions=(
            Decision(
                step="chart", side="cloud", rule="fixed_side", forbidden={"local": ("no_live_capability",)}
            ),
        ),
    )
    assert explain(partial) == [
        "Step chart went to the cloud: the rules name this side; it gave no answer.",
        "Without an answer: chart; the rest was merged.",
        "The answer is approximate: a better one did not come in time.",
        "It cost 0.5.",
    ]
    failed = Result(id="r", status="error", error=Failure(code="unknown_task", message="no such task"))
    assert explain(failed) == ["It failed: no such task (unknown task)."]
    assert explain(Result(id="r", status="ok")) == []


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("deadline_exceeded", "no answer came in time"),
        ("bad_input", "its inputs were refused"),
        ("backend_error", "its model failed"),
        ("bad_output", "its answer could not be published"),
        ("too_large", "its answer was too large"),
        ("internal", "it ended with internal"),
    ],
)
def test_a_failed_step_says_what_happened(code: Any, told: str) -> None:
    decision = Decision(step="s", side="local", rule="fixed_side")
    failure = Failure(code=code, message="step s: why")
    result = Result(id="r", status="error", missing=("s",), decisions=(decision,), error=failure)
    assert explain(result)[0].endswith(f"; {told}.")


def test_a_failed_step_does_not_speak_for_the_others() -> None:
    decisions = tuple(Decision(step=name, side="local", rule="fixed_side") for name in ("a", "b"))
    failure = Failure(code="bad_input", message="step a: the text is empty")
    result = Result(id="r", status="error", missing=("a", "b"), decisions=decisions, error=failure)
    first, second, *_ = explain(result)
    assert "its inputs were refused" in first
    assert "no longer needed" in second


def test_an_approximate_answer_says_whether_a_better_one_was_late_or_not_allowed() -> None:
    low = "low confidence: below the threshold 0.9 and no better place was allowed"
    weak = Result(id="r", status="ok", approximate=True, warnings=("possibly inaccurate (可能不准确)", low))
    assert explain(weak) == ["The answer is approximate: no better place was allowed."]
    late = Result(id="r", status="ok", approximate=True, warnings=("possibly inaccurate (可能不准确)",))
    assert explain(late) == ["The answer is approximate: a better one did not come in time."]


def test_a_degraded_answer_says_each_reason_and_its_age() -> None:
    weak = Result(id="r", status="ok", approximate=True, degraded=("cloud_slow", "low_confidence"))
    assert explain(weak) == [
        "The answer is approximate: the cloud did not answer in time; its confidence is below the threshold."
    ]
    old = Result(
        id="r",
        status="ok",
        approximate=True,
        cached=True,
        age_ms=754_321,
        degraded=("cloud_away", "stale_cache"),
    )
    assert explain(old) == [
        (
            "The answer is approximate: the cloud was away; an older answer to an equal request stands in"
            " (754 s old)."
        )
    ]
    assert set(REASONS) == set(DEGRADED) - {"parts_missing"}


def test_every_error_code_of_a_step_is_said_in_words() -> None:
    assert set(FAILURES) <= set(ERROR_CODES)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("budget", "the budget has not enough left for it, or nobody knows what is left"),
        ("max_cost", "it would cost more than the request allows"),
        ("unknown_cost", "nobody knows what it may cost at most"),
        ("input_schema", "the inputs are not what the capability takes there"),
        ("max_qps", "it gets as many calls a second as it takes already"),
        ("latency", "it is slower than the task allows"),
    ],
)
def test_every_constraint_says_why_a_side_is_closed(name: str, told: str) -> None:
    line = one(Decision(step="s", side="local", rule=name, forbidden={"cloud": (name,)}))
    assert line == f"Step s went to the edge: the other side was closed; the cloud was closed: {told}."


def test_the_words_have_every_constraint_of_the_router() -> None:
    assert {rule.name for rule in CONSTRAINTS} <= set(WORDS)


def test_a_predicted_weak_answer_and_the_capability_chosen() -> None:
    line = one(Decision(step="s", side="cloud", rule="predicted_weak", expected=0.25, capability="nlp/big"))
    assert line == (
        "Step s went to the cloud: the answer of the edge is expected to be too weak; of those that can do "
        "it, nlp/big was chosen; the edge's answer was expected to be enough with a chance of 0.25."
    )


@pytest.mark.parametrize(
    ("reasons", "masked", "told"),
    [
        (("declared",), False, "(the request declares it): it stays at the edge."),
        (("tenant",), False, "(the rules say so of its tenant): it stays at the edge."),
        (("task",), False, "(the rules say so of its task): it stays at the edge."),
        (("verdict_failed",), False, "(it could not be examined): it stays at the edge."),
        (
            ("declared", "email"),
            False,
            "(the request declares it; found in it: email): it stays at the edge.",
        ),
        (("credit_card",), True, "(found in it: credit card): the cloud gets placeholders"),
        ((), False, ": it stays at the edge."),
    ],
)
def test_privacy_is_told(reasons: tuple[str, ...], masked: bool, told: str) -> None:
    (line,) = explain(
        Result(id="r", status="ok", privacy=Verdict(level="high", reasons=reasons, masked=masked))
    )
    assert line.startswith("Sensitive")
    assert told in line


def test_what_is_not_sensitive_needs_no_words() -> None:
    assert of_privacy(Verdict()) is None
    assert explain(Result(id="r", status="ok", privacy=Verdict())) == []


def test_a_kept_answer_says_so_first() -> None:
    kept = Result(
        id="r", status="ok", cached=True, decisions=(Decision(step="s", side="local", rule="fixed_side"),)
    )
    assert explain(kept)[0] == "The answer to an equal request was still kept: nothing ran for this one."


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("over_budget", "the budget had not enough left to pay for it"),
        ("decomposer_failed", "the code that splits the request failed"),
        ("no_placement", "what it was to be given must not go there"),
    ],
)
def test_failures_of_this_router(code: Any, told: str) -> None:
    decision = Decision(step="s", side="cloud", rule="fixed_side")
    result = Result(
        id="r",
        status="error",
        missing=("s",),
        decisions=(decision,),
        error=Failure(code=code, message="step s: x"),
    )
    assert explain(result)[0].endswith(f"; {told}.")


def test_what_is_planned_is_told_in_the_present() -> None:
    decision = Decision(
        step="s",
        side="local",
        rule="score",
        scores={"local": 0.6, "cloud": 0.4},
        forbidden={"cloud": ("budget",)},
        threshold=0.9,
        reserved=0.5,
        note="x",
    )
    (line,) = planned([decision])
    assert line == (
        "Step s goes to the edge: it scores 0.60 against 0.40 for the cloud; below a confidence of 0.90 the "
        "other side is asked too; the cloud is closed: the budget has not enough left for it, or nobody "
        "knows what is left; it would cost 0.5 at most (x)."
    )
    assert planned([Decision(step="s", rule="budget")]) == ["Step s can run nowhere."]
