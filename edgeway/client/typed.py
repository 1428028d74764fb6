"""Answers as types: an output as a class of the caller's, an error result as an exception."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from edgeway.client.errors import FAILURES, CapabilityFailed
from schemas.messages import Result

T = TypeVar("T")


def raise_for_error(result: Result) -> Result:
    """`result` itself where it is `ok` or `partial`.

    Raises:
        AnswerError: the subclass of its error code (edgeway.client.errors.FAILURES).
    """
    if result.status != "error":
        return result
    kind = CapabilityFailed if result.error is None else FAILURES.get(result.error.code, CapabilityFailed)
    raise kind(result)


def output_as(result: Result, kind: type[T]) -> T:
    """The output of `result` as `kind`: a msgspec Struct, a dataclass, a TypedDict, `list[str]`, ...

    Raises:
        AnswerError: the result is an error.
        TypeError: the output is no such thing; the text says at which key. Also one that is too large for a
            record: it is not in the result, but where `result.claim` says.
    """
    output: Any = raise_for_error(result).output
    if output is None and result.claim is not None:
        raise TypeError(
            f"the output of request {result.id} is too large for a record and lies in the object store; a "
            "gateway gives it at /requests/ID/output, or read `result.claim.dataref` yourself"
        )
    try:
        return msgspec.convert(output, kind, strict=False)
    except msgspec.ValidationError as exc:
        name = getattr(kind, "__name__", str(kind))
        raise TypeError(f"the output of request {result.id} is no {name}: {exc}") from exc
