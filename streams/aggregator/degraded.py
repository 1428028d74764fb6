"""Why an answer is less than the best that was asked for, in the words of DEGRADED; the older answer that
stands in. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from schemas.errors import ErrorCode
from schemas.messages import DEGRADED, Decision, Plan, Result
from streams.aggregator.progress import Progress

INACCURATE = "possibly inaccurate (可能不准确)"
"""The first warning of every approximate answer."""
_BY_CODE: dict[ErrorCode, str] = {
    "over_budget": "over_budget",
    "no_placement": "cloud_refused",
    "deadline_exceeded": "cloud_slow",
}
_BY_CONSTRAINT = {"no_live_capability": "cloud_away", "budget": "over_budget", "max_cost": "over_budget"}


def why(step: Progress, decisions: Iterable[Decision]) -> set[str]:
    """What kept the cloud from answering `step`, and whether what answered is below the threshold."""
    words: set[str] = set()
    if step.is_below:
        words.add("low_confidence")
    has_cloud = False
    for index, attempt in enumerate(step.step.attempts):
        if attempt.side != "cloud":
            continue
        has_cloud = True
        failure = step.failures.get(index)
        if failure is not None:
            words.add(_BY_CODE.get(failure.code, "cloud_failed"))
        elif index in step.started and index not in step.weak:
            words.add("cloud_slow")
    if has_cloud:
        if step.fell_back_by == "silent":
            words.add("cloud_slow")
        return words
    for decision in decisions:
        if decision.step == step.name:
            words.update(_closed_by(name) for name in decision.forbidden.get("cloud", ()))
    return words


def ordered(words: Collection[str]) -> tuple[str, ...]:
    """`words` in the order of DEGRADED."""
    return tuple([word for word in DEGRADED if word in words])


def standing_in(plan: Plan, older: Result, words: Collection[str], now: int, cost: float = 0.0) -> Result:
    """`older`, an answer to an equal request, given at `now` (ms) because of `words`; its age has grown."""
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


def _closed_by(constraint: str) -> str:
    if constraint.startswith("breaker"):
        return "cloud_away"
    return _BY_CONSTRAINT.get(constraint, "cloud_refused")
