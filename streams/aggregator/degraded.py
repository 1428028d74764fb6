"""Why an answer is less than the best that was asked for, in the words of DEGRADED. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from schemas.errors import ErrorCode
from schemas.messages import Decision
from streams.aggregator.progress import Progress
from streams.degraded import INACCURATE, cloud_closed, ordered, standing_in

__all__ = ["INACCURATE", "ordered", "standing_in", "why"]

_BY_CODE: dict[ErrorCode, str] = {
    "over_budget": "over_budget",
    "no_placement": "cloud_refused",
    "deadline_exceeded": "cloud_slow",
}


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
        # Where a crash forgot how the fallback was started, silence is the likelier reason.
        if step.fell_back_by == "silent" or (step.approximate and not words):
            words.add("cloud_slow")
        return words
    return words | cloud_closed(decision for decision in decisions if decision.step == step.name)
