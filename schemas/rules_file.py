"""The tasks of a rules file, with templates, default steps and inherited settings filled in."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import msgspec

from schemas.places import Path
from schemas.rules_structs import (
    DEFAULT_MERGE,
    MergeRule,
    Price,
    RulesFile,
    StepRule,
    TaskRule,
    TenantRule,
)
from schemas.rules_text import RulesText
from schemas.templates import TEMPLATES

_OWN = tuple(name for name in RulesFile.__struct_fields__ if name != "tasks")
"""The keys beside the tasks."""
_BY_NAME: dict[str, type[msgspec.Struct]] = {"prices": Price, "tenants": TenantRule}
_INHERITED = ("local_threshold", "slow_ms", "on_slow", "latency_ms", "cache")


def tasks_of(text: RulesText) -> tuple[RulesFile, dict[str, TaskRule]]:
    """The file's own keys and its tasks. What is refused is kept in `text` and left out."""
    said = text.said
    named = said["tasks"] if not text.flat else {k: v for k, v in said.items() if k not in _OWN}
    if not isinstance(named, dict):
        text.refuse(("tasks",), "not an object; write NAME: {...} for each task")
    file = _own_keys(text, {k: v for k, v in said.items() if k in _OWN or not (text.flat or k == "tasks")})
    tasks = {}
    for name, entry in named.items():
        with text.part():
            tasks[name] = _named(text, name, entry)
    if file.builtin:
        for name in TEMPLATES.keys() - named.keys():
            tasks[name] = _task(text, name, {}, ())
    return file, dict(sorted(tasks.items()))


def _own_keys(text: RulesText, own: dict[str, Any]) -> RulesFile:
    found: dict[str, Any] = {}
    for key, value in own.items():
        with text.part():
            if key in _BY_NAME and isinstance(value, dict):
                for name, entry in value.items():
                    text.convert(entry, _BY_NAME[key], (key, name))
            found[key] = getattr(text.convert({key: value}, RulesFile, ()), key)
    return RulesFile(**found)


def _named(text: RulesText, name: str, entry: Any) -> TaskRule:
    path = text.task_path(name)
    if not name or len(name) > 128:
        text.refuse(path, "a task's name has 1 to 128 characters")
    if not isinstance(entry, dict):
        text.refuse(path, _no_task(text, name))
    return _task(text, name, entry, path)


def _task(text: RulesText, name: str, entry: dict[str, Any], path: Path) -> TaskRule:
    task = text.convert(entry, TaskRule, path)
    if task.steps and task.capability is not None:
        text.refuse(
            (*path, "capability"), "a task has a `capability` or `steps`, not both; name it in its step"
        )
    template = (
        TEMPLATES.get(name, {}) if not task.steps and task.capability is None and _builtin(text) else {}
    )
    if template:
        whole = msgspec.convert(template, TaskRule)
        steps: Any = template["steps"]
        changes: dict[str, Any] = {
            "phrases": task.phrases or whole.phrases,
            "merge": task.merge or whole.merge,
            "ignore": task.ignore if "ignore" in entry else whole.ignore,
        }
        task = msgspec.structs.replace(task, **changes, steps=_limited(task, whole.steps))
    elif task.steps:
        steps = entry["steps"]
    else:
        steps = [{}]
        task = msgspec.structs.replace(
            task, steps=(StepRule(name=_step_name(name), capability=task.capability or name),)
        )
    filled = tuple(_inherit(task, step, given) for step, given in zip(task.steps, steps, strict=True))
    merge = task.merge or (MergeRule(strategy=DEFAULT_MERGE) if len(filled) > 1 else None)
    return msgspec.structs.replace(task, steps=filled, merge=merge)


def _limited(task: TaskRule, steps: tuple[StepRule, ...]) -> tuple[StepRule, ...]:
    """The steps of a template under the task's `max_local_tokens`: longer inputs go to the cloud, so a step
    that is local without a limit may go there.
    """
    if task.max_local_tokens is None:
        return steps
    return tuple(
        msgspec.structs.replace(step, side="auto") if step.side == "local" else step for step in steps
    )


def _builtin(text: RulesText) -> bool:
    return text.said.get("builtin", True) is True


def _step_name(task: str) -> str:
    return task.replace("/", ".")


def _inherit(task: TaskRule, step: StepRule, given: dict[str, Any]) -> StepRule:
    """`step` with what the task says of all its steps."""
    changes: dict[str, Any] = {key: getattr(task, key) for key in _INHERITED if getattr(step, key) is None}
    if task.side is not None and "side" not in given:
        changes["side"] = task.side
    # A step that is always local would find no place at all beyond the limit.
    if step.max_local_tokens is None and changes.get("side", step.side) == "auto":
        changes["max_local_tokens"] = task.max_local_tokens
    return msgspec.structs.replace(step, **changes, capability=step.capability or step.name)


def _no_task(text: RulesText, name: str) -> str:
    if not text.flat:
        return "a task is an object"
    close = get_close_matches(name, ("tasks", *_OWN), 1)
    return "a task is an object" + (f"; did you mean the key {close[0]!r}?" if close else "")
