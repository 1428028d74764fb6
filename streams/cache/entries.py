"""What is kept of an answer, and the answer that another caller gets from it. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from schemas.ids import parse_subtask_id, subtask_id
from schemas.messages import Decision, Model, Part, Partial, RequestInfo, Result, Side
from schemas.values import least_size
from streams.cache.ports import MAX_ENTRY_BYTES

NOTHING = b"-"
"""The entry that says: the execution is over and left no answer to share."""
NOTHING_S = 5.0
"""How long NOTHING is kept: longer than any follower's patience, so that none waits for what is over."""
_FORMAT = 2
"""Of the entries; one of another format is no entry."""
_MARK = b"\xc1"
"""What an entry with its time begins with: a byte that no msgpack has."""
_TIME_BYTES = 8
_HEAD = len(_MARK) + _TIME_BYTES


class _Answer(Part, frozen=True, kw_only=True, tag="answer"):
    format: int
    rules: str
    tenant: str | None = None
    task: str | None = None
    output: Any = None
    confidence: float | None = None
    warnings: tuple[str, ...] = ()
    models: dict[str, Model] = {}
    sides: dict[str, Side] = {}
    decisions: tuple[Decision, ...] = ()


class _Step(Part, frozen=True, kw_only=True, tag="step"):
    format: int
    side: Side
    output: Any = None
    confidence: float | None = None
    model: Model | None = None


_ENCODE = msgspec.msgpack.Encoder().encode
_DECODE_ANSWER = msgspec.msgpack.Decoder(_Answer).decode
_DECODE_STEP = msgspec.msgpack.Decoder(_Step).decode


def answer_entry(result: Result) -> bytes | None:
    """What is kept of `result`, once `stamped`; None where it is no whole, exact, first-hand answer to a
    request that is not sensitive, or too large."""
    verdict = result.privacy
    if (
        result.status != "ok"
        or result.approximate
        or result.cached
        or result.error is not None
        or result.missing
        or result.claim is not None
        or result.rules is None
        or verdict is None
        or verdict.level != "normal"
        or verdict.masked
    ):
        return None
    return _bounded(
        result.output,
        _Answer(
            format=_FORMAT,
            rules=result.rules,
            tenant=result.tenant,
            task=result.task,
            output=result.output,
            confidence=result.confidence,
            warnings=result.warnings,
            models=result.models,
            sides=result.sides,
            decisions=tuple([_unpaid(decision) for decision in result.decisions]),
        ),
    )


def stamped(entry: bytes, at: int) -> bytes:
    """The `entry` of an answer as it is kept: with `at`, the ms since the epoch when it was given."""
    return _MARK + max(0, at).to_bytes(_TIME_BYTES, "big") + entry


def kept_at(entry: bytes) -> int | None:
    """When the answer in `entry` was given (ms since the epoch), None where it is none."""
    if len(entry) <= _HEAD or not entry.startswith(_MARK):
        return None
    return int.from_bytes(entry[len(_MARK) : _HEAD], "big")


def answer_of(entry: bytes, info: RequestInfo, rules: str) -> Result | None:
    """The answer to the request of `info` from `entry`, however old; None where there is none to share
    (NOTHING, another format, other rules or another tenant)."""
    if kept_at(entry) is None:
        return None
    try:
        kept = _DECODE_ANSWER(entry[_HEAD:])
    except msgspec.MsgspecError:
        return None
    if kept.format != _FORMAT or kept.rules != rules or kept.tenant != info.tenant:
        return None
    return Result(
        id=info.id,
        status="ok",
        output=kept.output,
        confidence=kept.confidence,
        warnings=kept.warnings,
        models=kept.models,
        sides=kept.sides,
        decisions=kept.decisions,
        tenant=info.tenant,
        task=info.task or kept.task,
        rules=rules,
        digest=info.digest,
        privacy=info.privacy,
        cached=True,
    )


def step_entry(partial: Partial) -> bytes | None:
    """What is kept of a step's answer; None where it is an error, came from a cache, lies elsewhere, or is
    too large. That it is neither weak nor of a sensitive request is for the caller to know."""
    if partial.error is not None or partial.cached or partial.claim is not None:
        return None
    return _bounded(
        partial.output,
        _Step(
            format=_FORMAT,
            side=parse_subtask_id(partial.subtask).side,
            output=partial.output,
            confidence=partial.confidence,
            model=partial.model,
        ),
    )


def step_of(entry: bytes, subtask: str, deadline: int) -> Partial | None:
    """The answer to `subtask` from `entry`, None where there is none to share. Its id names the side that
    gave the answer, whichever side the subtask was planned for."""
    if entry == NOTHING:
        return None
    try:
        kept = _DECODE_STEP(entry)
    except msgspec.MsgspecError:
        return None
    if kept.format != _FORMAT:
        return None
    place = parse_subtask_id(subtask)
    return Partial(
        subtask=subtask_id(place.request, place.step, kept.side, place.attempt),
        deadline=deadline,
        output=kept.output,
        confidence=kept.confidence,
        model=kept.model,
        cached=True,
    )


def _bounded(output: Any, entry: _Answer | _Step) -> bytes | None:
    if least_size(output, MAX_ENTRY_BYTES) > MAX_ENTRY_BYTES:
        return None
    try:
        raw = _ENCODE(entry)
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError):
        return None  # a merge of a user's own may return anything
    return raw if len(raw) + _HEAD <= MAX_ENTRY_BYTES else None


def _unpaid(decision: Decision) -> Decision:
    return msgspec.structs.replace(decision, reserved=0.0) if decision.reserved else decision
