"""Why an answer is less than the best, and the older one that stands in."""

from __future__ import annotations

import pytest

from schemas.ids import parse_subtask_id
from schemas.messages import Attempt, Decision, Failure, Result
from streams.aggregator.answers import INACCURATE, answer
from streams.aggregator.join import Join
from streams.merge import BUILT_IN, Merged
from tests.helpers.aggregation import CLOUD, CLOUD_FIRST, LOCAL, LOCAL_LAST, T0, partial, plan, step

DEADLINE = T0 + 10_000
OLDER = Result(
    id="other",
    status="ok",
    output={"label": "old"},
    cached=True,
    age_ms=400_000,
    approximate=True,
    degraded=("stale_cache",),
    sides={"s": "cloud"},
)


def ended(asked, *events, now=T0 + 10):
    """The answer after `events`: partials, or times at which the join is looked at."""
    join = Join(asked, T0)
    for event in events:
        if isinstance(event, int):
            now = event
        else:
            join.take(event, parse_subtask_id(event.subtask), now)
        join.advance(now)
    assert join.is_over
    return answer(join, BUILT_IN, now)


def error(code):
    return Failure(code=code, message="no")


def closed(*names):
    return (Decision(step="s", side="local", rule=names[0], forbidden={"cloud": names}),)


def test_a_good_answer_is_not_degraded_whatever_was_closed():
    asked = plan("r", step("s", LOCAL), decisions=closed("privacy"))
    found = ended(asked, partial(asked))
    assert (found.degraded, found.approximate) == ((), False)


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("backend_error", "cloud_failed"),
        ("over_budget", "over_budget"),
        ("no_placement", "cloud_refused"),
        ("deadline_exceeded", "cloud_slow"),
    ],
)
def test_a_fallback_by_failure_says_how_the_cloud_failed(code, word):
    asked = plan("r", step("s", CLOUD_FIRST, LOCAL_LAST, threshold=None))
    found = ended(asked, partial(asked, side="cloud", error=error(code)), partial(asked, attempt=1))
    assert (found.degraded, found.approximate, found.warnings) == ((word,), True, (INACCURATE,))


def test_a_fallback_by_silence_says_that_the_cloud_is_slow():
    asked = plan("r", step("s", CLOUD_FIRST, LOCAL_LAST, threshold=None))
    assert ended(asked, T0 + 500, partial(asked, attempt=1)).degraded == ("cloud_slow",)


def test_a_fallback_by_silence_stays_one_when_the_cloud_fails_after_all():
    asked = plan("r", step("s", CLOUD_FIRST, LOCAL_LAST, threshold=None))
    late = partial(asked, side="cloud", error=True)
    assert ended(asked, T0 + 500, late, partial(asked, attempt=1)).degraded == ("cloud_slow", "cloud_failed")


def test_a_weak_answer_at_last_says_what_the_cloud_did():
    asked = plan()
    weak = partial(asked, confidence=0.5)
    assert ended(asked, weak, T0 + 510).degraded == ("cloud_slow", "low_confidence")
    broken = partial(asked, side="cloud", attempt=1, error=error("over_budget"))
    assert ended(asked, weak, broken).degraded == ("over_budget", "low_confidence")


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("no_live_capability",), ("cloud_away",)),
        (("breaker_slow",), ("cloud_away",)),
        (("budget",), ("over_budget",)),
        (("max_cost", "breaker_away"), ("cloud_away", "over_budget")),
        (("privacy",), ("cloud_refused",)),
        (("a_rule_of_somebody",), ("cloud_refused",)),
        ((), ()),
    ],
)
def test_a_weak_answer_without_a_better_place_says_why_there_is_none(names, words):
    decisions = closed(*names) if names else ()
    asked = plan("r", step("s", LOCAL), decisions=decisions)
    found = ended(asked, partial(asked, confidence=0.1))
    assert found.degraded == (*words, "low_confidence")
    assert (found.approximate, found.warnings[0]) == (True, INACCURATE)


def test_of_several_steps_every_word_stands_once_and_the_warning_comes_first():
    asked = plan("r", step("s"), step("t"), step("u", LOCAL))
    weak = [partial(asked, name, confidence=0.5) for name in "st"]
    found = ended(asked, *weak, partial(asked, "u", confidence=0.1), T0 + 600)
    assert found.degraded == ("cloud_slow", "low_confidence")
    assert found.warnings.count(INACCURATE) == 1
    assert found.warnings[0] == INACCURATE


def test_missing_parts_alone_make_an_answer_partial_but_not_approximate():
    asked = plan("r", step("s", LOCAL), step("t", LOCAL))
    found = ended(asked, partial(asked, "s"), DEADLINE)
    assert (found.status, found.degraded, found.approximate) == ("partial", ("parts_missing",), False)


def test_an_older_answer_stands_in_where_every_attempt_failed():
    asked = plan("r", step("s", CLOUD_FIRST), stand_in=OLDER, tenant="acme")
    found = ended(asked, partial(asked, side="cloud", error=True, cost=0.5), now=T0 + 20_500 - 10_000)
    assert (found.id, found.status, found.output, found.error) == ("r", "ok", {"label": "old"}, None)
    assert found.degraded == ("cloud_failed", "stale_cache")
    assert (found.cached, found.approximate, found.age_ms) == (True, True, 410_500)
    assert found.warnings == (INACCURATE, "cached answer, 410 s old")
    assert (found.tenant, found.digest, found.rules, found.cost) == ("acme", "d", "v1", 0.5)


def test_an_older_answer_stands_in_at_the_deadline():
    asked = plan("r", step("s", LOCAL, CLOUD), stand_in=OLDER)
    assert ended(asked, T0 + 500, DEADLINE).degraded == ("cloud_slow", "stale_cache")
    closed_off = plan("r", step("s", LOCAL), stand_in=OLDER, decisions=closed("no_live_capability"))
    assert ended(closed_off, DEADLINE).degraded == ("cloud_away", "stale_cache")


@pytest.mark.parametrize("confidence", [0.2, 0.95])
def test_no_older_answer_is_given_where_there_is_any_of_now(confidence):
    asked = plan(stand_in=OLDER)
    found = ended(asked, partial(asked, confidence=confidence), DEADLINE)
    assert (found.output, found.cached, found.age_ms) == ("s/local/0", False, None)
    assert "stale_cache" not in found.degraded


def test_no_older_answer_is_given_instead_of_a_merge_that_fails_or_a_refusal():
    one = Attempt(side="local", triggers=("first",), capability="nlp/intent")
    asked = plan("r", step("s", one), step("t", one), stand_in=OLDER)
    join = Join(asked, T0)
    for name in "st":
        join.take(partial(asked, name), parse_subtask_id(f"r/{name}/local/0"), T0)
    join.advance(T0)
    assert answer(join, {"collect": lambda parts, params: Merged(1 / 0)}, T0).error.code == "merge_failed"
    refused = Join(asked, T0)
    refused.refuse(error("cancelled"))
    refused.advance(T0)
    found = answer(refused, BUILT_IN, T0)
    assert (found.error.code, found.output) == ("cancelled", None)
