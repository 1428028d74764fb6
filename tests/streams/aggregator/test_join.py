"""The rules of one join, without a table around it."""

from __future__ import annotations

import msgspec
import pytest

from schemas.ids import parse_subtask_id
from schemas.messages import Attempt, Failure, Merge, Model, Result, Step, Timings, Verdict
from streams.aggregator.answers import INACCURATE, answer
from streams.aggregator.join import Dispatch, Join
from streams.merge import BUILT_IN
from tests.helpers.aggregation import CLOUD, CLOUD_FIRST, LOCAL, LOCAL_LAST, T0, high, partial, plan, step

SECOND = Attempt(side="local", triggers=("weak", "failed"), capability="nlp/larger")


def give(join: Join, *partials, at: int = T0 + 10) -> list[Dispatch]:
    dispatches = []
    for one in partials:
        join.take(one, parse_subtask_id(one.subtask), at)
        dispatches += join.advance(at)
    return dispatches


def result(join: Join, now: int = T0 + 10):
    assert join.is_over
    return answer(join, BUILT_IN, now)


def test_a_good_answer_wins_at_once():
    asked = plan()
    join = Join(asked, T0)
    assert give(join, partial(asked)) == []
    found = result(join)
    assert (found.status, found.output, found.confidence) == ("ok", "s/local/0", 0.95)
    assert (found.sides, found.approximate, found.missing, found.warnings) == ({"s": "local"}, False, (), ())
    assert (found.rules, found.digest, found.id) == ("v1", "d", "r")
    assert found.timings["s"].total_ms == 10.0


def test_a_weak_answer_starts_the_weak_attempt_with_the_inputs_of_the_request():
    asked = plan()
    join = Join(asked, T0)
    assert give(join, partial(asked, confidence=0.5)) == [Dispatch("s", 1, "weak", {"text": "hello"})]
    assert not join.is_over
    assert give(join, partial(asked, side="cloud", attempt=1, confidence=0.6)) == []
    found = result(join)
    assert (found.output, found.confidence, found.approximate) == ("s/cloud/1", 0.6, False)


def test_a_worker_that_knows_of_the_cancellation_first_starts_no_other_attempt():
    error = Failure(code="cancelled", message="the caller cancelled the request")
    asked = plan()
    told = partial(asked, error=error, output=None, confidence=None)
    join = Join(asked, T0)
    assert give(join, told) == []
    found = result(join)
    assert (found.status, found.error.code) == ("error", "cancelled")
    # The next owner reads it out of the checkpoint.
    before = Join(asked, T0)
    before.take(told, parse_subtask_id(told.subtask), T0 + 10)
    after = Join.restore(before.checkpoint(), T0 + 20)
    assert after.advance(T0 + 30) == []
    assert result(after).error.code == "cancelled"


@pytest.mark.parametrize("confidence", [float("nan"), 0.0, 0.8999])
def test_what_is_not_at_least_the_threshold_is_weak(confidence):
    asked = plan()
    assert len(give(Join(asked, T0), partial(asked, confidence=confidence))) == 1


def test_an_answer_at_the_threshold_is_good_enough():
    asked = plan()
    join = Join(asked, T0)
    give(join, partial(asked, confidence=0.9))
    assert result(join).confidence == 0.9


def test_an_answer_without_confidence_is_taken_at_its_word():
    asked = plan()
    join = Join(asked, T0)
    give(join, partial(asked, confidence=None))
    assert result(join).status == "ok"


def test_a_weak_local_answer_is_marked_where_no_better_place_was_allowed():
    asked = plan("r", step("s", LOCAL))
    join = Join(asked, T0)
    assert give(join, partial(asked, confidence=0.1)) == []
    found = result(join)
    low = "low confidence: below the threshold 0.9 and no better place was allowed"
    assert (found.status, found.approximate, found.warnings) == ("ok", True, (INACCURATE, low))


def test_of_several_steps_the_weak_one_is_named():
    asked = plan("r", step("s", LOCAL), step("t", LOCAL))
    join = Join(asked, T0)
    give(join, partial(asked, "s"), partial(asked, "t", confidence=0.1))
    found = result(join)
    assert found.approximate
    assert found.warnings[1].startswith("step t: low confidence")


@pytest.mark.parametrize(
    ("attempt", "threshold", "confidence"),
    [(LOCAL, None, 0.1), (LOCAL, 0.9, None), (LOCAL, 0.9, 0.9), (CLOUD_FIRST, 0.9, 0.1)],
)
def test_other_answers_of_a_single_place_are_taken_as_they_are(attempt, threshold, confidence):
    asked = plan("r", step("s", attempt, threshold=threshold))
    join = Join(asked, T0)
    give(join, partial(asked, side=attempt.side, confidence=confidence))
    assert not result(join).approximate


def test_a_weak_answer_after_the_cloud_was_asked_for_its_silence_and_failed_is_marked():
    asked = plan()
    join = Join(asked, T0)
    assert len(join.advance(T0 + 500)) == 1
    give(
        join, partial(asked, side="cloud", attempt=1, error=True), partial(asked, confidence=0.1), at=T0 + 600
    )
    found = result(join, T0 + 600)
    assert (found.approximate, found.warnings) == (True, (INACCURATE,))


def test_a_cached_answer_joins_like_any_other_and_costs_nothing():
    asked = plan("r", step("s"), step("t"))
    join = Join(asked, T0)
    give(join, partial(asked, "s", "cloud", cached=True, confidence=0.5, model=Model(name="m", version="2")))
    assert not join.is_over
    give(join, partial(asked, "t", cost=0.25))
    found = result(join)
    assert (found.sides, found.cost, found.approximate, found.cached) == (
        {"s": "cloud", "t": "local"},
        0.25,
        False,
        False,
    )
    assert found.models["s"].version == "2"
    assert found.timings["s"] == Timings(total_ms=10.0)


def test_an_answer_of_cached_steps_alone_is_cached():
    asked = plan("r", step("s"), step("t"))
    join = Join(asked, T0)
    give(join, partial(asked, "s", cached=True), partial(asked, "t", cached=True))
    assert result(join).cached


def test_the_result_says_what_privacy_decided():
    asked = high(plan())
    join = Join(asked, T0)
    give(join, partial(asked))
    assert result(join).privacy == asked.request.privacy
    doomed = Join(asked, T0)
    doomed.refuse(Failure(code="internal", message="no"))
    doomed.advance(T0)
    assert result(doomed).privacy == asked.request.privacy
    given = Join(high(plan(answer=Result(id="r", status="error"))), T0)
    given.advance(T0)
    assert result(given).privacy == asked.request.privacy


MASK = {"[EMAIL_1]": "ann@example.org"}


def masked(*steps: Step, **fields):
    return plan(
        "r", *steps, privacy=Verdict(level="high", reasons=("email",), masked=True), mask=MASK, **fields
    )


@pytest.mark.parametrize("side", ["cloud", "local"])
def test_what_the_cloud_says_of_masked_inputs_is_unmasked_before_its_use(side):
    first = Attempt(side=side, triggers=("first",), capability="nlp/intent")
    later = step("t", LOCAL, after=("s",), inputs={"x": "steps.s"})
    asked = masked(step("s", first), later)
    join = Join(asked, T0)
    (dispatch,) = give(join, partial(asked, side=side, output={"to": "write to [EMAIL_1]"}))
    text = "ann@example.org" if side == "cloud" else "[EMAIL_1]"
    assert dispatch.inputs == {"x": {"to": f"write to {text}"}}
    again = Join.restore(join.checkpoint(), T0)
    give(again, partial(asked, "t"))
    assert result(again).output["s"] == {"to": f"write to {text}"}


def test_a_mask_that_is_none_fails_the_attempt():
    asked = msgspec.structs.replace(masked(step("s", CLOUD_FIRST)), mask={"EMAIL": "x"})
    join = Join(asked, T0)
    give(join, partial(asked, side="cloud"))
    assert result(join).error.code == "internal"


def test_a_weak_answer_is_used_when_the_better_one_fails():
    asked = plan()
    join = Join(asked, T0)
    give(join, partial(asked, confidence=0.5), partial(asked, side="cloud", attempt=1, error=True))
    found = result(join)
    assert (found.status, found.output, found.approximate) == ("ok", "s/local/0", True)
    assert found.warnings == (INACCURATE,)


def test_of_several_weak_answers_the_surest_is_used():
    asked = plan("r", step("s", LOCAL, SECOND, CLOUD))
    join = Join(asked, T0)
    give(join, partial(asked, confidence=0.5), partial(asked, attempt=1, confidence=0.4))
    give(join, partial(asked, side="cloud", attempt=2, error=True))
    assert result(join).output == "s/local/0"


def test_on_slow_answer_uses_the_weak_answer_after_slow_ms():
    asked = plan("r", step(slow_ms=200))
    join = Join(asked, T0)
    give(join, partial(asked, confidence=0.5))
    assert join.due() == T0 + 10 + 200
    assert join.advance(T0 + 209) == []
    assert not join.is_over
    join.advance(T0 + 210)
    assert result(join).approximate


def test_on_slow_wait_waits_until_the_deadline():
    asked = plan("r", step(slow_ms=200, on_slow="wait"))
    join = Join(asked, T0)
    give(join, partial(asked, confidence=0.5))
    assert join.due() == T0 + 10_000
    join.advance(T0 + 9_999)
    assert not join.is_over
    join.advance(T0 + 10_000)
    found = result(join)
    assert (found.status, found.output, found.approximate) == ("ok", "s/local/0", True)


def test_an_error_starts_the_failed_attempt_and_local_fallback_is_approximate():
    asked = plan("r", step("s", CLOUD_FIRST, LOCAL_LAST, threshold=None))
    join = Join(asked, T0)
    assert give(join, partial(asked, side="cloud", error=True)) == [
        Dispatch("s", 1, "failed", {"text": "hello"})
    ]
    give(join, partial(asked, attempt=1))
    found = result(join)
    assert (found.status, found.approximate, found.warnings) == ("ok", True, (INACCURATE,))


def test_silence_starts_the_silent_attempt_and_the_first_answer_wins():
    asked = plan("r", step("s", CLOUD_FIRST, LOCAL_LAST, slow_ms=300))
    join = Join(asked, T0)
    assert join.due() == T0 + 300
    assert join.advance(T0 + 299) == []
    assert join.advance(T0 + 300) == [Dispatch("s", 1, "silent", {"text": "hello"})]
    assert join.advance(T0 + 5_000) == []
    give(join, partial(asked, side="cloud"), at=T0 + 5_000)
    assert not result(join).approximate


def test_silence_is_counted_from_500_ms_where_the_step_says_nothing():
    assert Join(plan(), T0).due() == T0 + 500


def test_all_attempts_failed_is_an_error_with_the_step_named():
    asked = plan()
    join = Join(asked, T0)
    give(join, partial(asked, error=True), partial(asked, side="cloud", attempt=1, error=True))
    found = result(join)
    assert (found.status, found.error.code, found.missing) == ("error", "backend_error", ("s",))
    assert "step s" in found.error.message


def test_an_attempt_that_failed_may_still_answer_when_it_is_run_again():
    asked = plan()
    join = Join(asked, T0)
    give(join, partial(asked, error=True), partial(asked))
    assert result(join).output == "s/local/0"


def test_answers_of_another_plan_count_by_step():
    asked = plan("r", step("s", LOCAL, CLOUD))
    join = Join(asked, T0)
    give(join, partial(asked, side="cloud", attempt=0))
    assert (result(join).output, result(join).sides) == ("s/cloud/0", {"s": "cloud"})


def test_an_error_of_another_plan_changes_nothing():
    asked = plan()
    join = Join(asked, T0)
    assert give(join, partial(asked, side="cloud", attempt=0, error=True), partial(asked, "unknown")) == []
    assert not join.is_over


def test_a_dispatch_that_cannot_be_sent_counts_as_failed():
    asked = plan()
    join = Join(asked, T0)
    give(join, partial(asked, confidence=0.3))
    join.attempt_failed("s", 1, Failure(code="no_placement", message="closed"))
    join.advance(T0 + 11)
    assert (result(join).output, result(join).approximate) == ("s/local/0", True)


TWO = (step("a", LOCAL), step("b", LOCAL, after=("a",), inputs={"x": "steps.a.key", "t": "inputs.text"}))


def test_a_later_step_gets_the_output_of_the_earlier_one():
    asked = plan("r", *TWO, merge=Merge(strategy="collect"))
    join = Join(asked, T0)
    dispatched = give(join, partial(asked, "a", output={"key": 7}))
    assert dispatched == [Dispatch("b", 0, "first", {"x": 7, "t": "hello"})]
    give(join, partial(asked, "b", output=8))
    assert result(join).output == {"a": {"key": 7}, "b": 8}


def test_references_that_lead_nowhere_fail_the_step():
    later = step("b", LOCAL, after=("a",), inputs={"x": "steps.a.key"})
    asked = plan("r", step("a", LOCAL), later)
    join = Join(asked, T0)
    assert give(join, partial(asked, "a", output={})) == []
    found = result(join)
    assert (found.status, found.error.code, found.missing) == ("partial", "bad_input", ("b",))
    assert found.output == {"a": {}}


def test_a_failed_step_fails_those_after_it():
    asked = plan("r", *TWO)
    join = Join(asked, T0)
    give(join, partial(asked, "a", error=True))
    assert (result(join).status, result(join).missing) == ("error", ("a", "b"))


@pytest.mark.parametrize(
    "steps",
    [
        (step("a", LOCAL, after=("b",)), step("b", LOCAL, after=("a",))),
        (step("a", LOCAL, after=("nowhere",)),),
        (),
        (Step(name="s", capability="c", attempts=()),),
    ],
)
def test_a_plan_that_cannot_be_run_is_answered_at_once(steps):
    asked = msgspec.structs.replace(plan(), steps=steps)
    join = Join(asked, T0)
    join.advance(T0)
    assert (result(join).status, result(join).error.code) == ("error", "internal")


def test_the_deadline_answers_with_what_there_is():
    asked = plan("r", step("a", LOCAL), step("b", LOCAL))
    join = Join(asked, T0)
    give(join, partial(asked, "a"))
    join.advance(T0 + 10_000)
    found = result(join, T0 + 10_000)
    assert (found.status, found.output, found.missing) == ("partial", {"a": "a/local/0"}, ("b",))
    assert found.error.code == "deadline_exceeded"


def test_the_deadline_without_any_answer_is_an_error():
    join = Join(plan(), T0)
    assert join.advance(T0 + 10_000) == []
    found = result(join)
    assert (found.status, found.error.code, found.missing) == ("error", "deadline_exceeded", ("s",))


def test_every_cost_counts_once_also_that_of_losers():
    asked = plan()
    join = Join(asked, T0)
    weak = partial(asked, confidence=0.4, cost=0.25)
    give(join, weak, weak, partial(asked, side="cloud", attempt=1, cost=1.0))
    assert result(join).cost == 1.25


def test_a_merge_that_raises_is_named():
    asked = plan("r", step("a", LOCAL), merge=Merge(strategy="broken"))
    join = Join(asked, T0)
    give(join, partial(asked, "a"))
    found = answer(join, {"broken": lambda parts, params: 1 / 0}, T0)
    assert (found.status, found.error.code) == ("error", "merge_failed")
    assert "'broken'" in found.error.message


def test_a_plan_with_an_answer_closes_at_once():
    join = Join(plan(answer=Result(id="r", status="ok", output=5)), T0)
    assert join.advance(T0) == []
    assert result(join).output == 5


def test_other_rules_replace_a_plan_only_while_nothing_is_answered():
    first, second = plan(), plan(rules="v2")
    join = Join(first, T0)
    assert not join.can_be_replaced_by(first)
    assert join.can_be_replaced_by(second)
    give(join, partial(first, confidence=0.1))
    assert not join.can_be_replaced_by(second)


def test_a_checkpoint_restores_everything():
    asked = plan("r", step("a"), step("b", LOCAL, after=("a",)))
    join = Join(asked, T0)
    give(join, partial(asked, "a", confidence=0.5, cost=0.5))
    again = Join.restore(join.checkpoint(), T0 + 40_000)
    assert again.advance(T0 + 200) == []
    assert again.due() == join.due()
    give(again, partial(asked, "a", side="cloud", attempt=1, cost=1.0), at=T0 + 300)
    give(again, partial(asked, "b"), at=T0 + 300)
    assert (result(again).status, result(again).cost) == ("ok", 1.5)
    assert again.checkpoint().partials[:1] == join.checkpoint().partials


def test_a_plan_of_which_more_was_started_is_not_replaced():
    """What it started waits to be sent, and may not be started again."""
    join = Join(plan(), T0)
    assert len(join.advance(T0 + 500)) == 1
    assert not join.can_be_replaced_by(plan(rules="v2"))


def test_a_checkpoint_of_another_plan_starts_nothing_that_it_did_not_start():
    first = plan("r", step("s", LOCAL, CLOUD))
    older = Join(first, T0)
    older.advance(T0 + 500)
    join = Join(plan("r", step("s", LOCAL, LOCAL_LAST), rules="v2"), T0)
    join.merge(older.checkpoint(), T0)
    assert [dispatch.attempt for dispatch in join.advance(T0 + 500)] == [1]


def test_what_could_not_be_sent_is_tried_again_by_the_next_owner():
    asked = plan("r", step("s", slow_ms=9_000), step("t", LOCAL))
    join = Join(asked, T0)
    give(join, partial(asked, confidence=0.3))
    join.attempt_failed("s", 1, Failure(code="no_placement", message="closed"))
    join.advance(T0 + 11)
    assert "r/s/cloud/1" not in join.checkpoint().started


def test_a_verdict_keeps_every_attempt_from_the_cloud_before_it_is_dispatched():
    asked = high(plan("r", step("s", LOCAL, CLOUD, LOCAL_LAST)))
    join = Join(asked, T0)
    assert give(join, partial(asked, error=True)) == [Dispatch("s", 2, "failed", {"text": "hello"})]
