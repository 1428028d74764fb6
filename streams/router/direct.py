"""Capabilities as tasks: `local/nlp/summarize` is the one step nlp/summarize, at the edge. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from schemas.messages import Failure, Privacy, Side
from schemas.rules import Rules, StepRule, TaskRule, sides_of

MAX_NAMED = 10
"""An error names at most so many capabilities."""


def direct_tasks(rules: Rules) -> dict[str, TaskRule]:
    """A task of one step for each side and capability that `rules` use, by `SIDE/CAPABILITY`.

    What all tasks that use it share holds for it: it is private where every one of them is, so that no
    caller gets past a task's privacy by naming its capability. It is kept in no cache where one of them
    forbids that, and starts on demand where one of them says so.
    """
    return {f"{side}/{name}": _task(rules, side, name) for side, name in rules.capabilities}


def _task(rules: Rules, side: Side, capability: str) -> TaskRule:
    using = list(_using(rules, side, capability))
    level: Privacy = "high" if all(task.privacy == "high" for task, _ in using) else "normal"
    kept = False if any(step.cache is False for _, step in using) else None
    step = StepRule(name=capability.rpartition("/")[2], capability=capability, side=side, cache=kept)
    scales = any(task.scale_to_zero for task, _ in using)
    return TaskRule(steps=(step,), privacy=level, scale_to_zero=scales, stale_s=_stale_s(using))


def _using(rules: Rules, side: Side, capability: str) -> Iterator[tuple[TaskRule, StepRule]]:
    for task in rules.tasks.values():
        for step in task.steps:
            if side in sides_of(step) and capability in (step.capability, *step.alternatives):
                yield task, step


def _stale_s(using: list[tuple[TaskRule, StepRule]]) -> int | None:
    """0 where a task that uses it has no old answers; None: as the file says."""
    return 0 if any(task.stale_s == 0 for task, _ in using) else None


def names_side(task: str) -> bool:
    """Whether `task` is written as a capability of one side."""
    return task.startswith(("local/", "cloud/"))


def unknown_capability(task: str, known: dict[str, TaskRule]) -> Failure:
    """The refusal of a capability that no task uses on that side, naming the nearest ones."""
    names = sorted(known)
    near = difflib.get_close_matches(task[:64], names, n=MAX_NAMED, cutoff=0.4)
    named = [*near, *(name for name in names if name not in near)][:MAX_NAMED]
    more = f" and {len(names) - len(named)} more" if len(names) > len(named) else ""
    which = f"known: {', '.join(named)}{more}" if named else "the rules use none"
    return Failure(code="unknown_capability", message=f"no task of the rules uses that capability; {which}")
