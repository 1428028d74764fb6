"""What a closed join leaves behind: answers that others may share, reservations that nobody needs. Pure."""

from __future__ import annotations

from schemas.ids import scoped, subtask_id
from schemas.messages import Plan, Result
from streams.aggregator.join import Join
from streams.cache.entries import NOTHING, answer_entry, step_entry


def entries_of(join: Join, result: Result) -> list[tuple[str, bytes]]:
    """The (key, entry) pairs to keep of a join that is closed by `result`.

    NOTHING where others may wait for an answer that is not one to share. Only first-hand answers are kept,
    and of a step only one that is exact, whatever became of the request.
    """
    plan = join.plan
    found: list[tuple[str, bytes]] = []
    if plan.cache is not None and (result.degraded or not result.cached):
        entry = answer_entry(result)
        found.append((plan.cache, NOTHING if entry is None else entry))
    verdict = plan.request.privacy
    if verdict.level != "normal" or verdict.masked:
        return found
    for step in join.steps.values():
        key, partial = step.step.cache, step.answer
        if key is not None and partial is not None and not step.approximate:
            kept = step_entry(partial)
            if kept is not None:
                found.append((key, kept))
    return found


def paid_of(plan: Plan) -> list[str]:
    """The ids of the subtasks for which the router set money aside."""
    if not any(attempt.max_cost for step in plan.steps for attempt in step.attempts):
        return []
    request = scoped(plan.request.tenant, plan.request.id)
    return [
        subtask_id(request, step.name, attempt.side, index)
        for step in plan.steps
        for index, attempt in enumerate(step.attempts)
        if attempt.max_cost > 0
    ]


def unneeded_of(join: Join) -> list[str]:
    """Of these, those that no worker answered: never sent, or sent and not begun. What has begun stays set
    aside, whatever is asked to be released."""
    return [subtask for subtask in paid_of(join.plan) if not _is_answered(join, subtask)]


def _is_answered(join: Join, subtask: str) -> bool:
    partial = join.partials.get(subtask)
    return partial is not None and partial.error is None and not partial.cached
