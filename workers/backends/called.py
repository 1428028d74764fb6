"""What runs when a capability is called: a function, an object's `__call__`, or that of a class's object."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

Function = Callable[..., Any]


def parameters_of(function: Function) -> tuple[inspect.Parameter, ...]:
    """The parameters of a call."""
    found = tuple(inspect.signature(_called(function)).parameters.values())
    return found[1:] if inspect.isclass(function) else found


def hints_of(function: Function) -> dict[str, Any]:
    """The annotations of a call.

    Raises:
        TypeError, NameError: they cannot be read.
    """
    called = _called(function)
    known = called if inspect.isroutine(called) else getattr(type(called), "__call__")  # noqa: B004,B009
    return get_type_hints(known, include_extras=True)


def is_async(function: Function) -> bool:
    """Whether a call gives something to await."""
    called = _called(function)
    return inspect.iscoroutinefunction(called) or inspect.iscoroutinefunction(
        getattr(called, "__call__", None)  # noqa: B004
    )


def _called(function: Function) -> Function:
    # Of a class the call of its objects counts: the object is made when the capability is loaded.
    if not inspect.isclass(function):
        return function
    call: Function = function.__call__
    return call
