"""Requests split in code: a user's function from a request to steps.

    @decomposer("report")
    def split(request: Request) -> list[dict] | None:
        pages = [name for name in request.inputs if name.startswith("page")]
        return [{"name": page, "inputs": {"text": f"inputs.{page}"}} for page in pages] or None

It gives StepRules or the objects of a rules file, or None for the steps that the rules have. They are checked
like those of a rules file, and inherit the task's settings.
"""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from schemas.errors import RulesError
from schemas.messages import Failure, Request
from schemas.rules import Rules, StepRule, TaskRule, parse_rules
from streams.modules import ModuleWrong, marked
from streams.router.decompose import TaskFound
from streams.router.errors import DecomposerError
from streams.strangers import RAISED

log = logging.getLogger(__name__)

Decomposer = Callable[[Request], Sequence[StepRule | Mapping[str, Any]] | None]
F = TypeVar("F", bound=Decomposer)

MARK = "__edgeway_decomposes__"
MAX_STEPS = 64
"""Most steps that one request may become."""
_MAX_KEPT = 512
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_OF_THE_RULES = ("phrases", "capability", "steps", "predictor")


def decomposer(*tasks: str) -> Callable[[F], F]:
    """Marks a function that splits the requests of `tasks`. It runs in the router, for every one of them:
    it must be quick, and depend on the request alone."""
    given: tuple[object, ...] = tasks
    if not given or not all(isinstance(task, str) and task for task in given):
        raise DecomposerError('@decomposer names a task: write @decomposer("TASK") above the function')

    def mark(function: F) -> F:
        if inspect.iscoroutinefunction(function):
            raise DecomposerError(f"the decomposer {function.__name__} is async; make it a plain function")
        setattr(function, MARK, (*getattr(function, MARK, ()), *tasks))
        return function

    return mark


def load_decomposers(apps: Iterable[str]) -> dict[str, Decomposer]:
    """The decomposers of `apps`, modules or files ending in .py, by task.

    Raises:
        DecomposerError: one is not there, fails to load, marks nothing, or two claim one task.
    """
    try:
        return marked(
            apps,
            "decomposers",
            lambda value: getattr(value, MARK, None) or (),
            '@decomposer("TASK")',
            lambda task: f"two functions split the task {task!r}; keep one",
        )
    except ModuleWrong as error:
        raise DecomposerError(str(error)) from error


class Splitter:
    """Applies decomposers under one version of the rules, and remembers which steps it has checked."""

    def __init__(self, rules: Rules, decomposers: Mapping[str, Decomposer]) -> None:
        self._rules = rules
        self._decomposers = dict(decomposers)
        self._known = frozenset(capability for _, capability in rules.capabilities)
        self._checked: dict[tuple[str, bytes], TaskFound] = {}

    def split(self, request: Request, found: TaskFound) -> TaskFound | Failure:
        """The steps of `request`; a Failure `decomposer_failed` where its decomposer raises, or gives steps
        that a rules file could not have. It quotes neither the request nor what the decomposer says."""
        decompose = self._decomposers.get(found.name)
        if decompose is None:
            return found
        try:
            given = decompose(request)
        except KeyboardInterrupt:
            raise
        except RAISED as error:  # its text may quote the payload
            log.warning("the decomposer of the task %s raised %s", found.name, type(error).__name__)
            return _failed(found.name, f"raised {type(error).__name__}")
        if given is None:
            return found
        try:
            return self._steps(found, given)
        except RulesError as error:
            return _failed(found.name, f"gave steps that are refused: {_words(error)}")
        except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError) as error:
            return _failed(found.name, f"gave what is no list of steps ({type(error).__name__})")

    def _steps(self, found: TaskFound, given: Any) -> TaskFound | Failure:
        if not isinstance(given, list | tuple):
            return _failed(found.name, f"gave a {type(given).__name__}; give a list of steps, or None")
        if not 1 <= len(given) <= MAX_STEPS:
            return _failed(found.name, f"gave {len(given)} steps; give 1 to {MAX_STEPS}")
        raw = msgspec.json.encode(list(given))
        key = (found.name, raw)
        known = self._checked.get(key)
        if known is None:
            if len(self._checked) >= _MAX_KEPT:
                self._checked.clear()
            rule = checked_steps(found.name, found.rule, raw)
            known = self._checked[key] = TaskFound(found.name, rule, rule.steps, self._foreign(rule))
        return known

    def _foreign(self, rule: TaskRule) -> frozenset[str]:
        named = {name for step in rule.steps for name in (step.capability, *step.alternatives)}
        return frozenset(named - self._known)


def checked_steps(name: str, task: TaskRule, steps: bytes) -> TaskRule:
    """`task` with `steps` (a JSON array as in a rules file) in place of its own, filled in and checked.

    Raises:
        RulesError: a rules file with these steps would be refused.
    """
    said = {key: value for key, value in msgspec.to_builtins(task).items() if key not in _OF_THE_RULES}
    raw = msgspec.json.encode({"builtin": False, "tasks": {name: {**said, "steps": msgspec.Raw(steps)}}})
    return parse_rules(raw, in_code=True).tasks[name]


def _failed(task: str, why: str) -> Failure:
    return Failure(code="decomposer_failed", message=f"the decomposer of the task {task!r} {why}")


def _words(error: RulesError) -> str:
    """The reason without the names that it quotes: a decomposer may have made them of the payload."""
    reason = error.problems[0].reason if error.problems else "see `edgeway check`"
    return _QUOTED.sub("'...'", reason.partition(";")[0])[:200]
