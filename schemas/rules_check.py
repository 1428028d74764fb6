"""What must hold between the parts of a rules file."""

from __future__ import annotations

import unicodedata
from difflib import get_close_matches

from schemas.errors import UnknownTopic
from schemas.messages import Side
from schemas.places import Path
from schemas.rules_file import RulesText
from schemas.rules_structs import StepRule, TaskRule
from schemas.topics import capability_topic


def check_tasks(text: RulesText, tasks: dict[str, TaskRule]) -> tuple[tuple[Side, str], ...]:
    """Every (side, capability) of `tasks`, sorted.

    Raises:
        RulesError: a phrase of two tasks, a step named twice, a reference to nothing, a cycle, a name that
        makes no topic.
    """
    _check_phrases(text, tasks)
    places: dict[tuple[Side, str], Path] = {}
    for name, task in tasks.items():
        path = text.task_path(name)
        if task.weights and not task.weights.latency + task.weights.cost + task.weights.privacy:
            text.refuse((*path, "weights"), "all weights are 0; give at least one above 0")
        _check_steps(text, task, path)
        for index, step in enumerate(task.steps):
            for side in sides_of(step):
                places.setdefault((side, step.capability), (*path, "steps", index))
    _check_topics(text, places)
    return tuple(sorted(places))


def sides_of(step: StepRule) -> tuple[Side, ...]:
    """The sides that a step may run on."""
    return ("local", "cloud") if step.side == "auto" else (step.side,)


def folded(phrase: str) -> str:
    """A phrase without case, width and spacing: what two phrases tie by."""
    return " ".join(unicodedata.normalize("NFKC", phrase).casefold().split())


def _check_phrases(text: RulesText, tasks: dict[str, TaskRule]) -> None:
    owners: dict[str, str] = {}
    for name, task in tasks.items():
        for index, phrase in enumerate(task.phrases):
            path = (*text.task_path(name), "phrases", index)
            key = folded(phrase)
            if not key:
                text.refuse(path, "a phrase of spaces fits every query; write words")
            owner = owners.setdefault(key, name)
            if owner != name:
                text.refuse(
                    path,
                    f"the phrase {phrase!r} also belongs to the task {owner!r}; keep it in one of them"
                    ' (a built-in task is changed by naming it, or left out by "builtin": false)',
                )


def _check_steps(text: RulesText, task: TaskRule, path: Path) -> None:
    names = [step.name for step in task.steps]
    for index, step in enumerate(task.steps):
        place = (*path, "steps", index)
        if "/" in step.name or ("." in step.name and len(task.steps) > 1):
            text.refuse((*place, "name"), f"the step name {step.name!r} holds a slash or dot; use - or _")
        if step.name in names[:index]:
            text.refuse((*place, "name"), f"the step {step.name!r} stands twice; name each step once")
        for position, earlier in enumerate(step.after):
            if earlier not in names:
                text.refuse(
                    (*place, "after", position), f"no step {earlier!r} in this task{_near(earlier, names)}"
                )
    order = _before(text, task, path)
    for index, step in enumerate(task.steps):
        for name, reference in step.inputs.items():
            why = _wrong_reference(reference, names, order[step.name])
            if why:
                text.refuse((*path, "steps", index, "inputs", name), why)


def _wrong_reference(reference: str, names: list[str], before: frozenset[str]) -> str | None:
    root, _, rest = reference.partition(".")
    if reference == "query" or (root in ("inputs", "params") and rest):
        return None
    if root != "steps" or not rest:
        known = "inputs.NAME, query, params.NAME, steps.STEP or steps.STEP.NAME"
        return f"{reference!r} is no reference; write {known}"
    step, dot, field = rest.partition(".")
    if step not in names:
        return f"no step {step!r} in this task{_near(step, names)}"
    if dot and not field:
        return f"{reference!r} ends in a dot; write steps.STEP or steps.STEP.NAME"
    if step not in before:
        return f"reads the step {step!r} without coming after it; add it to `after`"
    return None


def _before(text: RulesText, task: TaskRule, path: Path) -> dict[str, frozenset[str]]:
    """For each step all the steps that end before it starts."""
    after = {step.name: step.after for step in task.steps}
    done: dict[str, frozenset[str]] = {}
    while len(done) < len(after):
        ready = [
            name for name in after if name not in done and all(earlier in done for earlier in after[name])
        ]
        if not ready:
            index = next(i for i, step in enumerate(task.steps) if step.name not in done)
            stuck = ", ".join(repr(name) for name in after if name not in done)
            text.refuse(
                (*path, "steps", index, "after"), f"the steps {stuck} wait for each other; break the cycle"
            )
        for name in ready:
            done[name] = frozenset(after[name]).union(*(done[earlier] for earlier in after[name]))
    return done


def _check_topics(text: RulesText, places: dict[tuple[Side, str], Path]) -> None:
    seen: dict[str, str] = {}
    for (side, capability), path in places.items():
        own, _, rest = capability.partition("/")
        if own in ("local", "cloud") and rest:
            text.refuse(
                path,
                f'the capability {capability!r} begins with a side; write "capability": "{rest}" and '
                f'"side": "{own}"',
            )
        try:
            topic = capability_topic(side, capability)
        except UnknownTopic as error:
            text.refuse(path, f"{error}; set `capability`")
        # Kafka names its metrics with _ for each dot and refuses a second topic of the same metric name.
        other = seen.setdefault(topic.replace("_", "."), capability)
        if other != capability:
            text.refuse(
                path,
                f"the capabilities {capability!r} and {other!r} make topics that Kafka cannot tell apart",
            )


def _near(name: str, names: list[str]) -> str:
    near = get_close_matches(name, names, 1)
    return f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(names)}"
