"""Weights and priorities of steps that the task's merge would not read, or could not use."""

from __future__ import annotations

from typing import Final

from schemas.places import Path
from schemas.rules_structs import TaskRule
from schemas.rules_text import RulesText

_READERS: Final = {
    "weight": ("majority_vote", "weighted_fusion"),
    "priority": ("deep_merge", "first_complete", "priority_override"),
}
_READ_NEITHER: Final = ("collect", "highest_confidence")
_OURS: Final = frozenset((*_READERS["weight"], *_READERS["priority"], *_READ_NEITHER))
"""What a strategy of an installed package reads is not known here."""


def check_merge(text: RulesText, name: str, task: TaskRule, path: Path) -> None:
    """Raises:
    RulesError: weights or priorities that do not fit the merge.
    """
    strategy = None if task.merge is None else task.merge.strategy
    if strategy is None or strategy in _OURS:
        for index, own in enumerate(text.entry(name).get("steps", [])):
            for key, readers in _READERS.items():
                if own.get(key) is not None and strategy not in readers:
                    merge = (
                        "nothing is merged here" if strategy is None else f"the merge {strategy!r} reads none"
                    )
                    why = f"a `{key}`, and {merge}; leave it out, or merge by {' or '.join(readers)}"
                    text.refuse((*path, "steps", index, key), why)
    at = (*path, "merge")
    if strategy in _READERS["weight"] and all(step.weight == 0 for step in task.steps):
        text.refuse(at, "the `weight` of every step is 0; give at least one above 0")
    fixed = {step.side for step in task.steps}
    unranked = all(step.priority is None for step in task.steps)
    if (
        strategy == "priority_override"
        and unranked
        and len(task.steps) > 1
        and fixed in ({"local"}, {"cloud"})
    ):
        text.refuse(at, "all steps are of one side and none has a `priority`: nothing ranks them; give some")
