"""A function's annotated parameters as a checked struct: arguments by name, and their JSON Schema."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any

import msgspec

from workers.backends import Row
from workers.backends.called import hints_of, parameters_of
from workers.backends.json_schema import schema_of, told
from workers.errors import BadInput, LoadError

_STARRED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Arguments:
    """What `f(text: str, limit: int = 3)` takes. `schema` is its JSON Schema."""

    def __init__(self, struct: type[msgspec.Struct], names: tuple[str, ...]) -> None:
        self._struct = struct
        self._names = names
        self.schema: dict[str, Any] = schema_of(struct)

    @staticmethod
    def of(function: Callable[..., Any]) -> Arguments | None:
        """None where the function takes two parameters, the first named `inputs`: inputs and params as they
        are.

        Raises:
            LoadError: parameters that no subtask can fill, such as `*args`, or annotations that cannot be
            checked.
        """
        parameters = parameters_of(function)
        names = tuple(parameter.name for parameter in parameters)
        if len(names) == 2 and names[0] == "inputs":
            return None
        label = getattr(function, "__name__", repr(function))
        if any(parameter.kind not in _KINDS for parameter in parameters):
            raise LoadError(
                f"{label}: a capability takes (inputs, params) or named parameters, no *args, ** or /"
            )
        try:
            hints = hints_of(function)
            fields = [_field(parameter, hints.get(parameter.name, Any)) for parameter in parameters]
            return Arguments(msgspec.defstruct(label, fields, kw_only=True), names)
        except (TypeError, NameError) as error:
            raise LoadError(f"{label}: its annotations cannot be checked: {error}") from error

    @staticmethod
    def rows_schema(function: Callable[..., Any]) -> dict[str, Any]:
        """The empty schema of what takes all rows of a run as one argument.

        Raises:
            LoadError: it takes more, or none.
        """
        try:
            parameters = parameters_of(function)
        except ValueError:
            return {}  # written in C: it does not say what it takes
        required = [each for each in parameters if each.default is inspect.Parameter.empty]
        needed = [each for each in required if each.kind not in _STARRED]
        places = [
            each for each in parameters if each.kind not in (*_STARRED[1:], inspect.Parameter.KEYWORD_ONLY)
        ]
        if not places or (needed and (len(needed) > 1 or needed[0].kind is inspect.Parameter.KEYWORD_ONLY)):
            label = getattr(function, "__name__", repr(function))
            raise LoadError(f"{label}: with batch=True it takes one argument, the list of (inputs, params)")
        return {}

    @staticmethod
    def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
        """The schema of what `function` takes; empty where that is inputs and params as they are."""
        arguments = Arguments.of(function)
        return {} if arguments is None else arguments.schema

    def read(self, row: Row) -> dict[str, Any]:
        """The arguments of a row: from inputs, else from params, else the default.

        Raises:
            BadInput: one is missing or of another type; the message names it and never quotes it.
        """
        inputs, params = row
        given = {
            name: inputs.get(name, params.get(name))
            for name in self._names
            if name in inputs or name in params
        }
        try:
            struct = msgspec.convert(given, self._struct)
        except msgspec.ValidationError as error:
            raise BadInput(told(error, "inputs")) from error
        return {name: getattr(struct, name) for name in self._names}


def _field(parameter: inspect.Parameter, hint: Any) -> tuple[str, Any] | tuple[str, Any, Any]:
    if parameter.default is inspect.Parameter.empty:
        return parameter.name, hint
    if isinstance(parameter.default, list | dict | set | bytearray):
        return parameter.name, hint, msgspec.field(default_factory=partial(copy, parameter.default))
    return parameter.name, hint, parameter.default
