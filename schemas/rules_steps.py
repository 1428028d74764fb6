"""What must hold between the steps of one task: names, order, references, alternatives."""

from __future__ import annotations

from schemas.places import Path
from schemas.rules_structs import TaskRule
from schemas.rules_text import RulesText, near


def check_steps(text: RulesText, task: TaskRule, path: Path) -> None:
    """Raises:
    RulesError: a step named twice, a reference to nothing or to what is not before, a cycle, an
    alternative that is none.
    """
    names = [step.name for step in task.steps]
    for index, step in enumerate(task.steps):
        place = (*path, "steps", index)
        if "/" in step.name or ("." in step.name and len(task.steps) > 1):
            text.refuse((*place, "name"), f"the step name {step.name!r} holds a slash or dot; use - or _")
        if step.name in names[:index]:
            text.refuse((*place, "name"), f"the step {step.name!r} stands twice; name each step once")
        for position, earlier in enumerate(step.after):
            if earlier not in names:
                why = f"no step {earlier!r} in this task; {near(earlier, names)}"
                text.refuse((*place, "after", position), why)
        for position, other in enumerate(step.alternatives):
            if other == step.capability or other in step.alternatives[:position]:
                why = f"the capability {other!r} is one of this step already; leave it out"
                text.refuse((*place, "alternatives", position), why)
    order = _before(text, task, path)
    for index, step in enumerate(task.steps):
        for name, reference in step.inputs.items():
            if why := _wrong_reference(reference, names, order[step.name]):
                text.refuse((*path, "steps", index, "inputs", name), why)


def _wrong_reference(reference: str, names: list[str], before: frozenset[str]) -> str:
    root, _, rest = reference.partition(".")
    if reference == "query" or (root in ("inputs", "params") and rest):
        return ""
    if root != "steps" or not rest:
        known = "inputs.NAME, query, params.NAME, steps.STEP or steps.STEP.NAME"
        return f"{reference!r} is no reference; write {known}"
    step, dot, field = rest.partition(".")
    if step not in names:
        return f"no step {step!r} in this task; {near(step, names)}"
    if dot and not field:
        return f"{reference!r} ends in a dot; write steps.STEP or steps.STEP.NAME"
    if step not in before:
        return f"reads the step {step!r} without coming after it; add it to `after`"
    return ""


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
