"""What a function gives back: its JSON Schema by the return annotation, and its values as answers."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Sequence
from typing import Any, Union, get_args, get_origin

import msgspec

from schemas.errors import Malformed
from schemas.values import all_finite
from workers.backends import Answer
from workers.backends.called import hints_of
from workers.backends.json_schema import schema_of, told
from workers.errors import BadOutput

_BYTES = (bytes, bytearray, memoryview)
_UNIONS = (Union, types.UnionType)


class Returns:
    """What `f(...) -> tuple[Summary, float]` gives back: an output (here a Summary) and maybe a confidence.

    `schema` is the output's; empty where the annotation says nothing, or names a type without a schema. An
    output is checked against the whole annotation: that is done in C and takes microseconds.
    """

    def __init__(self, kind: Any = Any) -> None:
        self.schema = {} if kind is Any else schema_of(kind)
        self._kind = kind if self.schema else Any

    @staticmethod
    def of(function: Callable[..., Any], *, batch: bool = False) -> Returns:
        """By the return annotation; of a `batch` function that is a list with one answer a row."""
        try:
            hint = hints_of(function).get("return", Any)
        except (TypeError, NameError):
            return Returns()
        if batch:
            inner = get_args(hint)
            hint = inner[0] if inner and _is_list(get_origin(hint)) else Any
        return Returns(_output(hint))

    def answer(self, value: Any) -> Answer:
        """A function's value as an Answer: a tuple of two whose second is a number or None is (output,
        confidence). Structs, dataclasses, enumerations, dates and sets become what a record can hold.

        Raises:
            BadOutput: a confidence outside [0, 1], an output that no record can hold, or another one than
            annotated.
        """
        answer = value if isinstance(value, Answer) else Answer(*_split(value))
        sure: Any = answer.confidence
        if sure is not None and not (isinstance(sure, int | float) and 0.0 <= sure <= 1.0):
            raise BadOutput("the confidence is not within 0 and 1")
        if answer.error is None and (self._kind is not Any or _is_record(answer.output)):
            answer = dataclasses.replace(answer, output=self._checked(answer.output))
        # msgpack carries NaN, so it would go unseen up to the caller who asked in JSON.
        try:
            finite = all_finite(answer.output)
        except Malformed as error:
            raise BadOutput(f"the output cannot be published: {error}") from error
        if not finite:
            raise BadOutput("the output holds NaN or an infinity")
        return answer

    def _checked(self, output: Any) -> Any:
        try:
            plain = msgspec.to_builtins(output, builtin_types=_BYTES)
        except (TypeError, ValueError, RecursionError) as error:
            kind = type(error).__name__
            raise BadOutput(f"the output cannot be published ({kind}: {_unquoted(error)})") from error
        if self._kind is not Any:
            try:
                msgspec.convert(plain, self._kind)
            except msgspec.ValidationError as error:
                raise BadOutput(f"not what the annotation says: {told(error, 'output')}") from error
        return plain


def _unquoted(error: Exception) -> str:
    text = str(error)
    return text if text.startswith("Encoding objects of type") else "it holds itself, or odd text"


def _is_record(output: Any) -> bool:
    return isinstance(output, msgspec.Struct) or dataclasses.is_dataclass(output)


def _is_list(origin: Any) -> bool:
    return isinstance(origin, type) and issubclass(origin, Sequence)


def _output(hint: Any) -> Any:
    """The type of the output alone, `Any` where it may be anything."""
    if get_origin(hint) in _UNIONS:
        kinds = tuple(_output(kind) for kind in get_args(hint) if not _is_exception(kind))
        return Any if Any in kinds or not kinds else Union[kinds]  # noqa: UP007 - of a tuple
    if hint is Answer:
        return Any
    inner = get_args(hint)
    if get_origin(hint) is tuple and len(inner) == 2 and _is_confidence(inner[1]):
        return _output(inner[0])
    return hint


def _is_exception(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseException)


def _is_confidence(kind: Any) -> bool:
    if get_origin(kind) in _UNIONS:
        return all(_is_confidence(each) for each in get_args(kind))
    return kind in (float, int, type(None))


def _split(value: Any) -> tuple[Any, float | None]:
    if type(value) is not tuple or len(value) != 2:
        return value, None
    output, confidence = value
    if confidence is None:
        return output, None
    if isinstance(confidence, bool) or not hasattr(confidence, "__float__"):
        return value, None
    return output, float(confidence)
