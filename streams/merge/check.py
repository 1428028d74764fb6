"""What the rules ask of merge strategies, checked before a request finds out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from types import MappingProxyType

from schemas.rules import MergeRule, Rules
from streams.merge.parts import Strategy

PARAMS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "collect": frozenset(),
        "deep_merge": frozenset(("sides",)),
        "first_complete": frozenset(("keys", "sides")),
        "highest_confidence": frozenset(),
        "majority_vote": frozenset(("key",)),
        "priority_override": frozenset(("sides",)),
        "weighted_fusion": frozenset(("labels",)),
    }
)
"""The `params` that our own strategies read; those of others are theirs to check."""


def wrong_merges(rules: Rules, strategies: Mapping[str, Strategy]) -> list[str]:
    """A line for each task whose merge names no strategy of `strategies`, or params that it never reads."""
    return [
        f"task {name}: {why}"
        for name, task in rules.tasks.items()
        if task.merge is not None
        for why in _wrong(task.merge, strategies)
    ]


def _wrong(merge: MergeRule, strategies: Mapping[str, Strategy]) -> Iterator[str]:
    if merge.strategy not in strategies:
        near = get_close_matches(merge.strategy, strategies, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        yield f"no merge strategy {merge.strategy!r}; {hint}there are {', '.join(sorted(strategies))}"
        return
    known = PARAMS.get(merge.strategy)
    unknown = sorted(merge.params.keys() - known) if known is not None else []
    if known is not None and unknown:
        reads = ", ".join(sorted(known)) or "none"
        yield f"the merge strategy {merge.strategy!r} has no params {', '.join(unknown)}; it reads {reads}"
