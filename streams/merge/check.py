"""What the rules ask of merge strategies, checked before a request finds out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import NamedTuple

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


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _are_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_text, value))


def _are_sides(value: object) -> bool:
    return isinstance(value, list | tuple) and sorted(map(str, value)) == ["cloud", "local"]


_FORMS: Mapping[str, tuple[Callable[[object], bool], str]] = MappingProxyType(
    {
        "key": (_is_text, "a text"),
        "keys": (_are_texts, "a list of texts"),
        "labels": (_are_texts, "a list of texts"),
        "sides": (_are_sides, 'a list of "cloud" and "local", the more important first'),
    }
)
"""What our strategies take them to be; another form failed every request, or was read letter by letter."""


class WrongMerge(NamedTuple):
    """The task, the path below it, and the reason with its mend."""

    task: str
    below: tuple[str, ...]
    why: str

    def __str__(self) -> str:
        return f"task {self.task}: {self.why}"


def wrong_merges(rules: Rules, strategies: Mapping[str, Strategy]) -> list[WrongMerge]:
    """Each task whose merge names no strategy of `strategies`, or params that it cannot read."""
    return [
        WrongMerge(name, ("merge", *below), why)
        for name, task in rules.tasks.items()
        if task.merge is not None
        for below, why in _wrong(task.merge, strategies)
    ]


def _wrong(merge: MergeRule, strategies: Mapping[str, Strategy]) -> Iterator[tuple[tuple[str, ...], str]]:
    if merge.strategy not in strategies:
        near = get_close_matches(merge.strategy, strategies, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        why = f"no merge strategy {merge.strategy!r}; {hint}there are {', '.join(sorted(strategies))}"
        yield ("strategy",), why
        return
    known = PARAMS.get(merge.strategy)
    unknown = sorted(merge.params.keys() - known) if known is not None else []
    if known is not None and unknown:
        reads = ", ".join(sorted(known)) or "none"
        why = f"the merge strategy {merge.strategy!r} has no params {', '.join(unknown)}; it reads {reads}"
        yield ("params", unknown[0]), why
    for name in sorted(known & merge.params.keys()) if known is not None else ():
        is_right, form = _FORMS[name]
        if not is_right(merge.params[name]):
            yield ("params", name), f"the merge strategy {merge.strategy!r} takes {form} as `{name}`"
