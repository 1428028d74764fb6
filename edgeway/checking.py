"""What is wrong with a rules file where it is to be used: with its apps, detectors, merges, files in code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from edgeway.errors import EdgewayError
from edgeway.rules_of import load_rules, require_merges
from schemas.errors import Problem, RulesError
from schemas.messages import Side
from schemas.rules import Rules, StepRule, sides_of
from schemas.rules_text import RulesText, near

Pair = tuple[Side, str]


class Checked(NamedTuple):
    """The rules, None where the file itself is refused, and the problems in the order of the text."""

    rules: Rules | None
    problems: tuple[Problem, ...]


def check(raw: bytes, path: Path, apps: Sequence[str] = ()) -> Checked:
    """Check `raw`, the text of the rules file at `path`, as the roles do at their start, and that `apps` (or
    those of the rules) offer the capabilities. Imports what the rules name.
    """
    try:
        rules = load_rules(raw, path)
    except RulesError as error:
        return Checked(None, error.problems)
    text = RulesText.read(raw)
    problems: list[Problem] = []
    for look in (_merges, _detectors, _code):
        try:
            problems += look(text, rules, raw)
        except RulesError as error:
            problems += error.problems
    if not problems:
        problems += _together(text, rules)
    problems += _apps(text, rules, apps)
    return Checked(rules, tuple(sorted(problems, key=lambda problem: problem.line)))


def summary(rules: Rules) -> dict[str, Any]:
    """What the rules come to, for people and programs."""
    sides: dict[str, list[str]] = {"local": [], "cloud": []}
    for side, capability in rules.capabilities:
        sides[side].append(capability)
    budget = rules.budget
    return {
        "version": rules.version,
        "tasks": sorted(rules.tasks),
        "steps": sum(len(task.steps) for task in rules.tasks.values()),
        "capabilities": sides,
        "detectors": _detectors_of(rules),
        "budget": None
        if budget is None
        else {"per_day": budget.per_day, "per_tenant": budget.per_tenant, "currency": budget.currency},
    }


def _detectors_of(rules: Rules) -> list[str]:
    from streams.privacy.detectors import BUILT_IN

    chosen = rules.privacy.detectors
    return list(BUILT_IN if chosen is None else chosen)


def _merges(text: RulesText, rules: Rules, raw: bytes) -> Iterable[Problem]:
    require_merges(rules, raw)
    return ()


def _detectors(text: RulesText, rules: Rules, raw: bytes) -> Iterator[Problem]:
    from streams.privacy.detectors import BUILT_IN
    from streams.privacy.examiner import UnknownDetector, examiner_of
    from streams.privacy.finding import KINDS

    try:
        examiner_of(rules.privacy)
    except UnknownDetector as error:
        yield text.problem(("privacy", "detectors"), str(error))
        return
    yield from _detectors_of_tasks(text, rules)
    if not set(rules.privacy.detectors or ()) <= set(BUILT_IN):
        return
    for key, kinds in (("mask", rules.privacy.mask), ("ignore", rules.privacy.ignore)):
        for index, kind in enumerate(kinds):
            if kind not in KINDS:
                yield text.problem(
                    ("privacy", key, index), f"no detector finds {kind!r}; {near(kind, sorted(KINDS))}"
                )


def _detectors_of_tasks(text: RulesText, rules: Rules) -> Iterator[Problem]:
    from streams.privacy.examiner import UnknownDetector, examiner_of
    from streams.privacy.finding import KINDS

    for name, task in rules.tasks.items():
        try:
            examiner_of(task.examination(rules.privacy))
        except UnknownDetector as error:
            yield text.problem((*text.task_path(name), "detectors"), str(error))
        for index, kind in enumerate(task.ignore):
            if kind not in KINDS and not task.detectors:
                path = (*text.task_path(name), "ignore", index)
                yield text.problem(path, f"no detector finds {kind!r}; {near(kind, sorted(KINDS))}")


def _code(text: RulesText, rules: Rules, raw: bytes) -> list[Problem]:
    """Decomposers and predictors, each by itself, for its place."""
    from streams.router.decomposer import load_decomposers
    from streams.router.predictor import load_predictor

    found: list[Problem] = []
    for index, name in enumerate(rules.decomposers):
        found += _failed(text, ("decomposers", index), partial(load_decomposers, (name,)))
    for name, task in rules.tasks.items():
        if task.predictor is not None:
            place = (*text.task_path(name), "predictor")
            found += _failed(text, place, partial(load_predictor, Path(task.predictor)))
    return found


def _together(text: RulesText, rules: Rules) -> list[Problem]:
    """What the router would refuse of parts that are sound by themselves: two decomposers of one task."""
    from edgeway.roles.planning import planner_of

    return _failed(text, ("decomposers",), partial(planner_of, rules))


def _failed(text: RulesText, place: tuple[str | int, ...], work: Callable[[], object]) -> list[Problem]:
    try:
        work()
    except (EdgewayError, ValueError, OSError) as error:
        return [text.problem(place, str(error))]
    return []


def _apps(text: RulesText, rules: Rules, apps: Sequence[str]) -> list[Problem]:
    from workers.backends.fallback import endpoints_of
    from workers.catalogue import load_app
    from workers.errors import WorkerError

    offered: set[Pair] = {("cloud", capability) for capability in endpoints_of(rules)}
    problems = []
    for index, app in enumerate(apps or rules.apps):
        try:
            offered.update((backend.card.side, backend.card.capability) for backend in load_app(app))
        except WorkerError as error:
            problems.append(text.problem(("apps", index), str(error)))
    if problems or not (apps or rules.apps):
        return problems
    # A built-in task that the file does not name is nobody's wish yet.
    for name, task in rules.tasks.items():
        if task.scale_to_zero or not text.names(name):
            continue
        for index, step in enumerate(task.steps):
            if why := _unoffered(step, offered):
                problems.append(text.problem(text.step_path(name, index), why))
    return problems


def _unoffered(step: StepRule, offered: set[Pair]) -> str:
    wanted = [(side, name) for side in sides_of(step) for name in (step.capability, *step.alternatives)]
    if offered.intersection(wanted):
        return ""
    names = " or ".join(f"{side}/{name}" for side, name in wanted)
    known = [f"{side}/{name}" for side, name in offered]
    hint = near(f"{wanted[0][0]}/{step.capability}", known)
    return f"unknown capability: no app offers {names}; {hint} (one that starts on demand: `scale_to_zero`)"
