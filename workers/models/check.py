"""The recorded check of a version: inputs, and what the model answered to them when it was added.

`check.json`: `rows` (`inputs`, `params`), `answers` (`output`, `confidence`, or the code of an `error`),
`tolerance`, `deadline_s`. Bytes among the inputs are `{"$base64": "..."}`.
"""

from __future__ import annotations

import base64
import binascii
import math
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from workers.backends import Answer, Backend, Call, RemoteBackend, Row
from workers.errors import Away, CheckFailed, Damaged, RepositoryError
from workers.inference import infer

DEADLINE_S = 60.0
MOST_ROWS = 1000
_BYTES = "$base64"
_SHOWN = 60
_AWAY = ("backend_error", "deadline_exceeded")
"""What callers of a service elsewhere are told that gave no usable answer."""


class Asked(msgspec.Struct, frozen=True):
    """One row."""

    inputs: dict[str, Any]
    params: dict[str, Any] = {}


class Expected(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was answered to it."""

    output: Any = None
    confidence: float | None = None
    error: str | None = None


class Tolerance(msgspec.Struct, frozen=True):
    """Two numbers are equal within `abs + rel * |recorded|`, confidences within `confidence`."""

    abs: float = 1e-4
    rel: float = 1e-3
    confidence: float = 1e-3


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """Rows and their answers, in one order. Loading and all answers may take `deadline_s`."""

    rows: tuple[Asked, ...] = ()
    answers: tuple[Expected, ...] = ()
    tolerance: Tolerance = Tolerance()
    deadline_s: float = DEADLINE_S


def decode_check(raw: bytes, where: str) -> Check:
    """The check at `where`.

    Raises:
        Damaged: it cannot be used.
    """
    try:
        found = msgspec.json.decode(raw, type=Check)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Damaged(f"{where}: {error}; remove that version and add it again") from error
    if len(found.rows) != len(found.answers):
        raise Damaged(f"{where} has {len(found.rows)} rows and {len(found.answers)} answers")
    return found


def encode_check(check: Check) -> bytes:
    """As it stands in its file."""
    return msgspec.json.encode(check) + b"\n"


def record(
    backend: Backend, rows: Sequence[Asked], tolerance: Tolerance, deadline_s: float = DEADLINE_S
) -> Check:
    """What a loaded `backend` answers to `rows`.

    Raises:
        RepositoryError: it answers none of them, or the answers to the same rows differ from run to run.
        Away: it asks elsewhere, and was not given all answers.
    """
    if len(rows) > MOST_ROWS:
        raise RepositoryError(f"{len(rows)} rows are too many for a check; give up to {MOST_ROWS}")
    given = _asked(backend, rows, deadline_s)
    _look_for_away(backend, given)
    told = [answer.error.message for answer in given if answer.error is not None]
    if rows and len(told) == len(rows):
        raise RepositoryError(
            f"the model answers none of the {len(rows)} rows of its check: {told[0]}; give inputs "
            "that it takes"
        )
    answers = tuple(map(_expected, given))
    check = Check(rows=tuple(rows), answers=answers, tolerance=tolerance, deadline_s=deadline_s)
    try:
        run(backend, check)
    except CheckFailed as error:
        raise RepositoryError(
            f"the model answers the same rows otherwise each time ({error}); give a wider tolerance, or rows "
            "of which it is sure"
        ) from error
    return check


def run(backend: Backend, check: Check) -> None:
    """Have a loaded `backend` answer the rows again.

    Raises:
        CheckFailed: names the first answer that is not as recorded; says nothing of the inputs.
        Away: it asks elsewhere, and was not given all answers.
    """
    answers = _asked(backend, check.rows, check.deadline_s)
    _look_for_away(backend, answers)
    for number, (recorded, answer) in enumerate(zip(check.answers, answers, strict=True)):
        found = difference(recorded, _expected(answer), check.tolerance)
        if found is not None:
            raise CheckFailed(f"answers[{number}]{found}")


def _look_for_away(backend: Backend, answers: Sequence[Answer]) -> None:
    """Raises Away."""
    if isinstance(backend, RemoteBackend):
        for answer in answers:
            if answer.error is not None and answer.error.code in _AWAY:
                raise Away(answer.error.message)


def difference(expected: Expected, found: Expected, tolerance: Tolerance) -> str | None:
    """Where two answers differ first and how, as the end of a path; None where they agree. Pure."""
    if expected.error != found.error:
        return f".error: {found.error or 'none'} where {expected.error or 'none'} was recorded"
    told = _differ(expected.output, found.output, tolerance, ".output")
    if told is not None:
        return told
    old, new = expected.confidence, found.confidence
    if (old is None) != (new is None) or (old is not None and abs(old - (new or 0.0)) > tolerance.confidence):
        return f".confidence: {new} where {old} was recorded"
    return None


def _differ(old: Any, new: Any, tolerance: Tolerance, path: str) -> str | None:
    if _is_number(old) and _is_number(new):
        close = math.isclose(old, new) or abs(old - new) <= tolerance.abs + tolerance.rel * abs(old)
        return None if close else f"{path}: {new:g} where {old:g} was recorded"
    if type(old) is not type(new):
        return f"{path}: {_kind(new)} where {_kind(old)} was recorded"
    if isinstance(old, dict):
        if old.keys() != new.keys():
            odd = sorted(old.keys() ^ new.keys())[0]
            return f"{path}: {odd[:_SHOWN]!r} is {'missing' if odd in old else 'new'}"
        pairs = ((f"{path}.{key[:_SHOWN]}", old[key], new[key]) for key in old)
    elif isinstance(old, list):
        if len(old) != len(new):
            return f"{path}: {len(new)} elements where {len(old)} were recorded"
        pairs = ((f"{path}[{i}]", *both) for i, both in enumerate(zip(old, new, strict=True)))
    else:
        # Text may be the payload's: its length is enough to go by.
        length = f" ({len(new)} and {len(old)} characters)" if isinstance(old, str) else ""
        return None if old == new else f"{path}: another {_kind(old)} than was recorded{length}"
    return next((told for at, a, b in pairs if (told := _differ(a, b, tolerance, at)) is not None), None)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    names = {str: "text", dict: "object", list: "array", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")


def _asked(backend: Backend, rows: Sequence[Asked], deadline_s: float) -> list[Answer]:
    found: list[Answer] = []
    until = time.monotonic() + deadline_s
    most = max(1, backend.card.max_batch)
    asked = [Row(_plain(row.inputs), _plain(row.params)) for row in rows]
    for begin in range(0, len(asked), most):
        part = asked[begin : begin + most]
        name = f"check-{backend.card.model}-{backend.card.version}"
        calls = (
            [Call(f"{name}-{begin + i}", until) for i in range(len(part))]
            if isinstance(backend, RemoteBackend)
            else None
        )
        if not _share_a_batch(backend, part):
            for i, row in enumerate(part):
                found += infer(backend, [row], lambda _: False, calls and [calls[i]])
        else:
            found += infer(backend, part, lambda _: False, calls)
    return found


def _share_a_batch(backend: Backend, rows: Sequence[Row]) -> bool:
    try:
        return len({backend.kin(row) for row in rows}) < 2
    except Exception:  # noqa: BLE001 - a backend may refuse a row there; its answer says why
        return False


def _expected(answer: Answer) -> Expected:
    if answer.error is not None:
        return Expected(error=answer.error.code)
    output = msgspec.json.decode(msgspec.json.encode(answer.output))
    return Expected(output=output, confidence=answer.confidence)


def _plain(value: Any) -> Any:
    """A value of JSON with its bytes as bytes."""
    if isinstance(value, dict):
        if value.keys() == {_BYTES}:
            try:
                return base64.b64decode(value[_BYTES], validate=True)
            except (binascii.Error, TypeError, ValueError) as error:
                raise RepositoryError(f"a {_BYTES} of the check is no base64") from error
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value
