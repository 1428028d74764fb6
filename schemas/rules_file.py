"""Reading a rules file: JSON with places, so that an error can say where it is, and the tasks in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, NoReturn, TypeVar

import msgspec

from schemas.choices import choices_at, located
from schemas.errors import RulesError, UnknownTopic
from schemas.places import Path, offset, show
from schemas.rules_structs import DEFAULT_MERGE, MergeRule, RulesFile, StepRule, TaskRule, Weights
from schemas.templates import TEMPLATES
from schemas.topics import reply_topic
from schemas.values import check_value

MAX_RULES_BYTES = 2**20
"""What a ConfigMap can carry."""

S = TypeVar("S", bound=msgspec.Struct)

_OWN = tuple(name for name in RulesFile.__struct_fields__ if name != "tasks")
"""The keys beside the tasks."""
_INHERITED = ("local_threshold", "slow_ms", "on_slow")
_UNKNOWN = re.compile(r"unknown field `(.*?)`", re.DOTALL)


class RulesText:
    """The text of a rules file and what it says."""

    def __init__(self, text: str, said: dict[str, Any]) -> None:
        self.text = text
        self.said = said
        self.flat = "tasks" not in said

    @classmethod
    def read(cls, raw: bytes) -> RulesText:
        """The file in `raw`.

        Raises:
            RulesError: no JSON object, or one with a key twice.
        """
        if len(raw) > MAX_RULES_BYTES:
            raise RulesError(f"rules: {len(raw)} bytes; at most {MAX_RULES_BYTES} are read")
        try:
            text = raw.decode("utf-8-sig")
            if not text.strip():
                raise RulesError('rules: the file is empty; write {"tasks": {"NAME": {...}}}')
            said = json.loads(text, object_pairs_hook=_unique, parse_constant=_constant)
        except UnicodeDecodeError as error:
            raise RulesError(f"rules: not UTF-8 at byte {error.start}; save the file as UTF-8") from None
        except json.JSONDecodeError as error:
            raise RulesError(f"rules: line {error.lineno}, column {error.colno}: {error.msg}") from None
        except RecursionError:
            raise RulesError("rules: nested too deep") from None
        except RulesError:
            raise
        except ValueError as error:
            raise RulesError(f"rules: {error}") from None
        if not isinstance(said, dict):
            raise RulesError('rules: not a JSON object; write {"tasks": {"NAME": {...}}}')
        try:
            check_value(said, "rules")
            msgspec.json.encode(said)
        except (ValueError, TypeError, OverflowError) as error:
            raise RulesError(f"rules: {error}") from None
        return cls(text, said)

    def refuse(self, path: Path, why: str) -> NoReturn:
        """Raises the error at `path`, with its line."""
        line = self.text.count("\n", 0, offset(self.text, path)) + 1
        raise RulesError(f"rules: {show(path)} (line {line}): {why}")

    def convert(self, value: Any, kind: type[S], path: Path) -> S:
        """`value` as `kind`, with errors at their place below `path`."""
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            why, below = located(str(error))
            if why.startswith("Invalid enum value") and (known := choices_at(kind, below)):
                why += f"; give one of {', '.join(known)}"
            elif why.startswith("Expected `str` matching regex"):
                why = "no URL; give http://HOST... or https://HOST..."
            unknown = _UNKNOWN.search(why)
            if unknown is None:
                self.refuse(path + below, why)
            self.refuse((*path, *below, unknown.group(1)), _unknown(unknown.group(1), kind, below))

    def task_path(self, name: str) -> Path:
        """Where the task `name` stands."""
        return (name,) if self.flat else ("tasks", name)

    def reply_topics(self, names: Iterable[str]) -> set[str]:
        """The reply topics by their whole names."""
        found = set()
        for index, name in enumerate(names):
            try:
                found.add(reply_topic(name))
            except UnknownTopic as error:
                self.refuse(("reply_topics", index), str(error))
        return found


def tasks_of(text: RulesText) -> tuple[RulesFile, dict[str, TaskRule]]:
    """The file's own keys, and its tasks with templates, default steps and inherited settings filled in."""
    said = text.said
    named = said["tasks"] if not text.flat else {k: v for k, v in said.items() if k not in _OWN}
    if not isinstance(named, dict):
        text.refuse(("tasks",), "not an object; write NAME: {...} for each task")
    own = {k: v for k, v in said.items() if k in _OWN or not (text.flat or k == "tasks")}
    file = text.convert(own, RulesFile, ())
    tasks = {}
    for name, entry in named.items():
        path = text.task_path(name)
        if not name or len(name) > 128:
            text.refuse(path, "a task's name has 1 to 128 characters")
        if not isinstance(entry, dict):
            text.refuse(path, _no_task(text, name))
        tasks[name] = _task(text, name, entry, path)
    if file.builtin:
        for name in TEMPLATES.keys() - tasks.keys():
            tasks[name] = _task(text, name, {}, ())
    return file, dict(sorted(tasks.items()))


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
        changes = {"phrases": task.phrases or whole.phrases, "merge": task.merge or whole.merge}
        task = msgspec.structs.replace(task, **changes, steps=whole.steps)
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
    near = get_close_matches(name, ("tasks", *_OWN), 1)
    return "a task is an object" + (f"; did you mean the key {near[0]!r}?" if near else "")


def _unknown(key: str, kind: type[msgspec.Struct], below: Path) -> str:
    part: Any = (
        {"steps": StepRule, "merge": MergeRule, "weights": Weights}.get(str(below[0]), kind)
        if below
        else kind
    )
    known = part.__struct_encode_fields__
    near = get_close_matches(key, known, 1)
    return "unknown key; " + (
        f"did you mean {near[0]!r}?" if near else f"known are {', '.join(sorted(known))}"
    )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise RulesError(f"rules: the key {key!r} stands twice in one object; give it once")
        found[key] = value
    return found


def _constant(name: str) -> NoReturn:
    raise RulesError(f"rules: {name} is no JSON number")
