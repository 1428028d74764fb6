"""Kept answers by their age: fresh ones answer, older ones stand in where a request has no other. Pure."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from schemas.messages import RequestInfo, Result
from schemas.rules import Rules, TaskRule
from streams.cache import answer_of, kept_at
from streams.degraded import cloud_closed, standing_in
from streams.router.plan import Planned

_HAS_NO_PLACE = frozenset(("no_placement", "over_budget"))
"""Refusals that say nothing against the request itself."""


class Kept(NamedTuple):
    """An answer to an equal request; one that is not fresh may only stand in."""

    answer: Result
    is_fresh: bool


def stale_s_of(rules: Rules, task: TaskRule) -> int:
    """How old an answer of `task` may be that stands in, in seconds; 0: none may."""
    return rules.stale_s if task.stale_s is None else task.stale_s


def is_old(entry: bytes, now: int, rules: Rules) -> bool:
    """Whether `entry` holds an answer that is no longer fresh at `now` (ms)."""
    at = kept_at(entry)
    return at is not None and now - at > rules.cache_s * 1000


def kept_of(entry: bytes, info: RequestInfo, rules: Rules, task: TaskRule, now: int) -> Kept | None:
    """The answer to the request of `info` from `entry` at `now` (ms), None where there is none that may be
    given. The age of an older one is what it was when the request was accepted."""
    at = kept_at(entry)
    if at is None:
        return None
    is_fresh = bool(rules.cache_s) and not is_old(entry, now, rules)
    if not is_fresh and now - at > stale_s_of(rules, task) * 1000:
        return None
    answer = answer_of(entry, info, rules.version)
    if answer is None or is_fresh:
        return None if answer is None else Kept(answer, True)
    older = msgspec.structs.replace(
        answer, age_ms=max(0, info.accepted - at), approximate=True, degraded=("stale_cache",)
    )
    return Kept(older, False)


def backed(made: Planned, older: Result | None, now: int) -> Planned:
    """`made` with the `older` answer behind it: it stands in where the steps have none, and answers at once
    where no side was left to run on. Never for a sensitive request."""
    plan = made.plan
    verdict = plan.request.privacy
    if older is None or verdict.level != "normal" or verdict.masked:
        return made
    if plan.answer is None:
        return made._replace(plan=msgspec.structs.replace(plan, stand_in=older))
    if plan.answer.error is None or plan.answer.error.code not in _HAS_NO_PLACE:
        return made
    given = standing_in(plan, older, cloud_closed(plan.decisions), now)
    return made._replace(plan=msgspec.structs.replace(plan, answer=given))


def unbacked(made: Planned) -> Planned:
    """`made` without the answer that stands in, which may make a plan too large for a record."""
    return made._replace(plan=msgspec.structs.replace(made.plan, stand_in=None))
