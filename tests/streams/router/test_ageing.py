"""Laws of kept answers by their age."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import ERROR_CODES
from schemas.messages import Decision, Failure, Plan, RequestInfo, Result, Verdict
from streams.cache import answer_entry, stamped
from streams.router import Planned
from streams.router.ageing import backed, is_old, kept_of, stale_s_of, unbacked
from streams.router.plan import refusal
from tests.helpers.routing import ruled

NOW = 1_700_000_000_000
VERDICTS = st.sampled_from(
    [Verdict(), Verdict(level="high"), Verdict(level="high", masked=True), Verdict(masked=True)]
)


@st.composite
def said(draw: st.DrawFn) -> tuple[Any, int, int]:
    """Rules, `cache_s`, and the `stale_s` that holds for the task."""
    cache_s = draw(st.integers(0, 100))
    older = st.just(0) | st.integers(cache_s + 1, 300)
    whole, own = draw(older), draw(st.none() | older)
    rules = ruled({"t": {} if own is None else {"stale_s": own}}, cache_s=cache_s, stale_s=whole)
    return rules, cache_s, whole if own is None else own


def info(**fields: Any) -> RequestInfo:
    return RequestInfo(id="r", deadline=NOW + 9_000, **{"accepted": NOW - 50, "task": "t", **fields})


def entry_of(rules: Any, at: int, tenant: str | None = None) -> bytes:
    made = answer_entry(
        Result(id="q", status="ok", output=1, rules=rules.version, privacy=Verdict(), tenant=tenant)
    )
    assert made is not None
    return stamped(made, at)


@given(said(), st.integers(-500, 400_000))
def test_an_answer_is_fresh_or_old_or_none_by_its_age_alone(given_: tuple[Any, int, int], age: int) -> None:
    rules, cache_s, stale_s = given_
    task = rules.tasks["t"]
    assert stale_s_of(rules, task) == stale_s
    entry = entry_of(rules, NOW - age)
    kept = kept_of(entry, info(), rules, task, NOW)
    if cache_s and age <= cache_s * 1000:
        assert kept is not None
        assert (kept.is_fresh, kept.answer.approximate, kept.answer.age_ms) == (True, False, None)
        assert not is_old(entry, NOW, rules)
    elif age <= stale_s * 1000:
        assert kept is not None
        answer = kept.answer
        assert (kept.is_fresh, answer.approximate, answer.degraded) == (False, True, ("stale_cache",))
        assert answer.age_ms == max(0, age - 50)
        assert answer.cached
    else:
        assert kept is None
    assert kept_of(entry, info(tenant="other"), rules, task, NOW) is None
    assert kept_of(entry, info(), msgspec.structs.replace(rules, version="other"), task, NOW) is None


@given(VERDICTS, st.sampled_from(ERROR_CODES) | st.none(), st.booleans())
def test_an_older_answer_stands_behind_plans_and_for_want_of_a_place_alone(
    verdict: Verdict, code: Any, has_older: bool
) -> None:
    asked = info(privacy=verdict)
    older = Result(id="q", status="ok", output=1, cached=True, age_ms=5_000, approximate=True)
    decision = Decision(step="s", rule="budget", forbidden={"cloud": ("budget",)})
    if code is None:
        plan = Plan(request=asked, rules="v", decisions=(decision,))
    else:
        plan = refusal(asked, Failure(code=code, message="no"), "v", (decision,))
    made = Planned(plan, ())
    found = backed(made, older if has_older else None, NOW).plan
    if not has_older or verdict.level != "normal" or verdict.masked:
        assert found == plan
    elif code is None:
        assert (found.stand_in, found.answer) == (older, None)
        assert unbacked(Planned(found, ())).plan == plan
    elif code in ("no_placement", "over_budget"):
        assert found.answer is not None
        assert (found.answer.error, found.answer.output) == (None, 1)
        assert found.answer.degraded == ("over_budget", "stale_cache")
        assert (found.answer.age_ms, found.answer.id) == (5_050, "r")
    else:
        assert found == plan
