"""Contradictions of one task: sides that its other keys cannot mean, times that never come."""

from __future__ import annotations

from typing import Any, Final

from schemas.places import Path
from schemas.rules_structs import StepRule, TaskRule
from schemas.rules_text import RulesText

_OF_CLOUD: Final = ("fallback_url", "cloud_batch_size")
_OF_LOCAL: Final = ("local_threshold", "max_local_tokens")


def check_sides(text: RulesText, name: str, task: TaskRule, path: Path) -> None:
    """Raises:
    RulesError: keys that contradict each other; those that a template or a default brings never do.
    """
    given = text.entry(name)
    _check_task_side(text, given, task, path)
    if task.privacy == "high":
        _check_high(text, task, path)
    if not text.in_code:
        _check_used(text, given, task, path)
    steps: list[dict[str, Any]] = given.get("steps", [])
    for index, step in enumerate(task.steps):
        own = steps[index] if steps else {}
        place = (*path, "steps", index)
        for key in _OF_LOCAL:
            if key in own and step.side == "cloud":
                text.refuse((*place, key), f"`{key}` is for the local side, and this step runs in the cloud")
        _check_times(text, task, step, place if "slow_ms" in own else path, "slow_ms", _NEVER_ASKED)
        _check_times(text, task, step, place if "latency_ms" in own else path, "latency_ms", _TOO_LATE)


def _check_used(text: RulesText, given: dict[str, Any], task: TaskRule, path: Path) -> None:
    for key in _OF_CLOUD:
        if key in given and all(step.side == "local" for step in task.steps):
            text.refuse((*path, key), f"`{key}` is for the cloud, and no step of this task may run there")
    for key in _OF_LOCAL:
        if key in given and all(step.side == "cloud" for step in task.steps):
            text.refuse((*path, key), f"`{key}` is for the local side, and every step runs in the cloud")
    if task.predictor is not None and all(step.side != "auto" for step in task.steps):
        why = "a predictor chooses between the sides, and no step has a choice; leave it out, or give a step"
        text.refuse((*path, "predictor"), f'{why} the side "auto"')


def _check_task_side(text: RulesText, given: dict[str, Any], task: TaskRule, path: Path) -> None:
    if task.side is None or task.side == "auto":
        return
    other = "cloud" if task.side == "local" else "local"
    for index, step in enumerate(task.steps):
        if step.side != other:
            continue
        if "steps" in given:
            why = f"the side of this step is {other!r} and that of its task {task.side!r}; leave one out"
            text.refuse((*path, "steps", index, "side"), why)
        why = f"the built-in step {step.name!r} is of the side {other!r}"
        text.refuse((*path, "side"), f"{why}; leave `side` out, or write `steps` of your own")


def _check_high(text: RulesText, task: TaskRule, path: Path) -> None:
    for step in task.steps:
        if step.side == "cloud":
            why = f'the step {step.name!r} runs in the cloud alone, where "high" may never go'
            text.refuse((*path, "privacy"), f'{why}; give it the side "local", or leave `privacy` out')
    for key in _OF_CLOUD:
        if getattr(task, key) is not None:
            why = f'`{key}` is for the cloud, where a task of `privacy` "high" never goes; leave one out'
            text.refuse((*path, key), why)
    for step in task.steps:
        if step.cache:
            why = '`cache` is true, and no answer of a task of `privacy` "high" is ever kept; leave one out'
            text.refuse((*path, "cache") if task.cache else (*path, "steps", task.steps.index(step)), why)


_NEVER_ASKED = "the other side would never be asked in time"
_TOO_LATE = "no side that keeps it would be in time"


def _check_times(text: RulesText, task: TaskRule, step: StepRule, place: Path, key: str, then: str) -> None:
    have = getattr(step, key)
    if have is not None and task.deadline_ms is not None and have > task.deadline_ms:
        why = f"`{key}` {have} is beyond the task's `deadline_ms` {task.deadline_ms}: {then}"
        text.refuse((*place, key), f"{why}; give a shorter one, or a longer deadline")
