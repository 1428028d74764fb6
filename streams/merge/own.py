"""Merge strategies of the user's own, in a module that the rules file names under `merges`:

@merge_strategy("longest")
def longest(parts: Sequence[Part], params: Mapping[str, Any]) -> Merged:
    best = max(parts, key=lambda part: (len(str(part.output)), part.step))
    return Merged(best.output, best.confidence)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TypeVar

from streams.merge.parts import Strategy
from streams.modules import ModuleWrong, marked

F = TypeVar("F", bound=Strategy)
MARK = "__edgeway_merges__"


class MergeError(ValueError):
    """A module of merge strategies that cannot be used; the message says which and why."""


def merge_strategy(name: str) -> Callable[[F], F]:
    """Marks a function as the merge strategy `name`. It runs in the aggregator, for every answer of the tasks
    that ask for it: it must be quick, and depend on its arguments alone, not on the order of the parts."""
    given: object = name
    if not (isinstance(given, str) and given.strip()):
        raise MergeError('@merge_strategy has a name: write @merge_strategy("NAME") above the function')

    def mark(function: F) -> F:
        why = _unfit(function)
        if why is not None:
            raise MergeError(f"the merge strategy {name} {why}")
        setattr(function, MARK, (*getattr(function, MARK, ()), name))
        return function

    return mark


def load_merges(modules: Iterable[str]) -> dict[str, Strategy]:
    """The strategies of `modules`, or files ending in .py, by name.

    Raises:
        MergeError: one is not there, fails to load, marks nothing, or two have one name.
    """
    try:
        return marked(
            modules,
            "merges",
            _names,
            '@merge_strategy("NAME")',
            lambda own: f"two strategies are called {own!r}; rename one",
        )
    except ModuleWrong as error:
        raise MergeError(str(error)) from error


def _unfit(function: object) -> str | None:
    """Why a call with parts and params gives no Merged, where that can be seen beforehand."""
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return "is async; make it a plain function"
    if inspect.isgeneratorfunction(function):
        return "is a generator; return one Merged"
    if not callable(function) or inspect.isclass(function):
        return "is no function; write @merge_strategy above one"
    try:
        inspect.signature(function).bind((), {})
    except TypeError:
        return "does not take two arguments, the parts and the params"
    except ValueError:
        return None  # written in C: nobody knows
    return None


def _names(value: object) -> tuple[str, ...]:
    found = getattr(value, MARK, ()) if callable(value) else ()
    return found if isinstance(found, tuple) else ()
