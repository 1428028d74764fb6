"""Recorded traffic, one JSON object a line: a request, when it came, and what became of it. Pure.

A line is `{"request": {...}, "at": MS, "result": {...}, "feedback": {...}, "attempts": [...]}`; all but
`request` may be missing. A bare request, as `edgeway send --file` takes it, is a line as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from edgeway.request_lines import BadLine
from schemas import codec, ids
from schemas.bounds import Money, Ratio
from schemas.errors import SchemaError
from schemas.messages import Feedback, Partial, Request, Result, Side

_KEYS = frozenset(("request", "at", "result", "feedback", "attempts"))
_LATEST = 253_402_300_799_999


class Attempted(msgspec.Struct, frozen=True, omit_defaults=True):
    """One attempt that was carried out: how long it waited and ran, what it cost and how sure it was."""

    step: str
    side: Side
    confidence: Ratio | None = None
    cost: Money = 0.0
    queue_ms: float = 0.0
    service_ms: float = 0.0
    failed: bool = False

    @property
    def took_ms(self) -> float:
        """Queue and service."""
        return self.queue_ms + self.service_ms


class Recorded(NamedTuple):
    """One line: `raw` is the request as it was sent, `at` its append time in ms (0: not known)."""

    number: int
    raw: bytes
    request: Request
    at: int = 0
    result: Result | None = None
    feedback: Feedback | None = None
    attempts: tuple[Attempted, ...] = ()

    @property
    def scoped(self) -> str | None:
        """The id inside Edgeway, None where neither request nor result names one."""
        name = self.request.id or (None if self.result is None else self.result.id)
        return None if name is None else ids.scoped(self.request.tenant, name)


_NOTHING = msgspec.Raw(b"null")


class _Line(msgspec.Struct, frozen=True):
    request: msgspec.Raw
    at: int = 0
    result: msgspec.Raw = _NOTHING
    feedback: msgspec.Raw = _NOTHING
    attempts: tuple[Attempted, ...] = ()


_HEAD = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LINE = msgspec.json.Decoder(_Line)


def parse_recorded(number: int, raw: bytes) -> Recorded | BadLine:
    """The record of one line; a reason, without the line, where it is none."""
    try:
        if not _is_record(raw):
            return Recorded(number, raw, codec.decode_request(raw, "json"))
        line = _LINE.decode(raw)
        if not 0 <= line.at <= _LATEST:
            return BadLine(number, "`at` is no time in ms since 1970")
        asked = bytes(line.request)
        return Recorded(
            number,
            asked,
            codec.decode_request(asked, "json"),
            line.at,
            _message(line.result, Result),
            _message(line.feedback, Feedback),
            line.attempts,
        )
    except (SchemaError, msgspec.DecodeError, RecursionError) as error:
        return BadLine(number, _words(error))


def parse_feedback(number: int, raw: bytes) -> Feedback | BadLine:
    """One line of a file of feedback: `{"id": ..., "tenant"?: ..., "verdict"?: ..., "score"?: ...}`."""
    try:
        return codec.decode(raw, Feedback, "json")
    except SchemaError as error:
        return BadLine(number, _words(error))


def right_of(feedback: Feedback | None) -> float | None:
    """How right an answer was, from 0 to 1; None where nothing is said."""
    if feedback is None:
        return None
    if feedback.verdict is not None:
        return 1.0 if feedback.verdict == "right" else 0.0
    return feedback.score


def attempted(partials: Iterable[Partial]) -> tuple[Attempted, ...]:
    """The attempts that `partials` of one request tell of; one that comes twice counts once."""
    found: dict[str, Attempted] = {}
    for partial in partials:
        if partial.cached or partial.subtask in found:
            continue
        try:
            place = ids.parse_subtask_id(partial.subtask)
        except SchemaError:
            continue
        found[partial.subtask] = Attempted(
            place.step,
            place.side,
            partial.confidence,
            partial.cost,
            partial.timings.queue_ms,
            partial.timings.service_ms,
            partial.error is not None,
        )
    return tuple(found.values())


def line_of(recorded: Recorded) -> bytes:
    """`recorded` as a line of a file. The answer itself stays out: nothing reads it again."""
    found: dict[str, Any] = {"request": msgspec.Raw(recorded.raw)}
    if recorded.at:
        found["at"] = recorded.at
    if recorded.result is not None:
        found["result"] = msgspec.structs.replace(recorded.result, output=None, claim=None)
    if recorded.feedback is not None:
        found["feedback"] = recorded.feedback
    if recorded.attempts:
        found["attempts"] = recorded.attempts
    return msgspec.json.encode(found) + b"\n"


def _is_record(raw: bytes) -> bool:
    """Whether a line is a record and no bare request that happens to have an input named `request`."""
    try:
        head = _HEAD.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    asked = head.get("request")
    return asked is not None and _KEYS.issuperset(head) and bytes(asked).lstrip().startswith(b"{")


def _message(raw: msgspec.Raw, kind: Any) -> Any:
    said = bytes(raw)
    return None if said == b"null" else codec.decode(said, kind, "json")


def _words(error: Exception) -> str:
    if isinstance(error, SchemaError):
        return str(error)
    if isinstance(error, RecursionError):
        return "no line of recorded traffic: nested too deep"
    # The decoder quotes what it did not expect, and that may be private.
    return f"no line of recorded traffic: {str(error).split(chr(39))[0][:120]}"
