"""Answers less than the best: their words, their warning, and the older answer that stands in. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from schemas.messages import DEGRADED, Decision, Plan, Result

INACCURATE = "possibly inaccurate (可能不准确)"
"""The first warning of every approximate answer."""
_AWAY = "no_live_capability"
_BY_CONSTRAINT = {
    _AWAY: "cloud_away",
    "breaker_failing": "cloud_away",
    "breaker_away": "cloud_away",
    "breaker_slow": "cloud_away",
    "budget": "over_budget",
    "max_cost": "over_budget",
}


def ordered(words: Collection[str]) -> tuple[str, ...]:
    """`words` in the order of DEGRADED, each once."""
    return tuple([word for word in DEGRADED if word in words])


def cloud_closed(decisions: Iterable[Decision]) -> set[str]:
    """Why the cloud was not to be had for the steps of these decisions."""
    words: set[str] = set()
    for decision in decisions:
        names = set(decision.forbidden.get("cloud", ()))
        if _AWAY in names:
            names.discard("unknown_cost")  # nobody is there to say it
        words.update(_BY_CONSTRAINT.get(name, "cloud_refused") for name in names)
    return words


def standing_in(plan: Plan, older: Result, words: Collection[str], now: int, cost: float = 0.0) -> Result:
    """`older`, an answer to a request equal to that of `plan`, given at `now` (ms) because of `words`.

    Its `age_ms` is what it was when the request was accepted, and has grown since.
    """
    request = plan.request
    age_ms = (older.age_ms or 0) + max(0, now - request.accepted)
    return msgspec.structs.replace(
        older,
        id=request.id,
        tenant=request.tenant,
        task=request.task,
        digest=request.digest,
        privacy=request.privacy,
        rules=plan.rules,
        decisions=plan.decisions,
        cost=cost,
        cached=True,
        age_ms=age_ms,
        approximate=True,
        degraded=ordered({*words, "stale_cache"}),
        warnings=(INACCURATE, f"cached answer, {age_ms // 1000} s old"),
    )
