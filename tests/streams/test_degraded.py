"""The words for answers that are less than the best."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.messages import DEGRADED, Decision, Plan, RequestInfo, Result
from streams.degraded import INACCURATE, cloud_closed, ordered, standing_in
from streams.router import CONSTRAINTS


def closed(**forbidden: tuple[str, ...]) -> set[str]:
    return cloud_closed([Decision(step="s", rule="r", side="local", forbidden=forbidden)])


@pytest.mark.parametrize(
    ("names", "word"),
    [
        (("no_live_capability",), "cloud_away"),
        (("no_live_capability", "unknown_cost"), "cloud_away"),
        (("breaker_failing",), "cloud_away"),
        (("breaker_away",), "cloud_away"),
        (("budget",), "over_budget"),
        (("max_cost",), "over_budget"),
        (("privacy",), "cloud_refused"),
        (("unknown_cost",), "cloud_refused"),
        (("input_schema",), "cloud_refused"),
    ],
)
def test_why_the_cloud_was_closed(names: tuple[str, ...], word: str) -> None:
    assert closed(cloud=names) == {word}
    assert closed(local=names) == set()


def test_all_reasons_are_told() -> None:
    assert closed(cloud=("privacy", "no_live_capability", "budget")) == {
        "cloud_refused",
        "cloud_away",
        "over_budget",
    }


def test_every_constraint_has_a_word() -> None:
    for rule in CONSTRAINTS:
        assert closed(cloud=(rule.name,)) <= set(DEGRADED)
        assert len(closed(cloud=(rule.name,))) == 1


@given(st.lists(st.sampled_from(DEGRADED)))
def test_words_stand_once_and_in_their_order(words: list[str]) -> None:
    found = ordered(words)
    assert set(found) == set(words)
    assert [DEGRADED.index(word) for word in found] == sorted({DEGRADED.index(word) for word in words})


@given(age=st.integers(0, 10**9), waited=st.integers(-5, 60_000))
def test_an_older_answer_ages_while_its_caller_waits(age: int, waited: int) -> None:
    info = RequestInfo(id="r", accepted=1_000_000, deadline=1_060_000, tenant="t", digest="d")
    older = Result(id="q", status="ok", output=7, confidence=0.9, cached=True, age_ms=age, cost=0.0)
    given_ = standing_in(Plan(request=info, rules="v"), older, {"cloud_away"}, 1_000_000 + waited)
    assert given_.age_ms == age + max(0, waited)
    assert given_.warnings == (INACCURATE, f"cached answer, {given_.age_ms // 1000} s old")
    assert given_.degraded == ("cloud_away", "stale_cache")
    assert (given_.id, given_.tenant, given_.digest, given_.rules) == ("r", "t", "d", "v")
    assert (given_.output, given_.approximate, given_.cached, given_.error) == (7, True, True, None)
