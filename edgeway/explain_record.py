"""The router's decision on one request as a record: pure, what `edgeway explain --json` writes."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from edgeway.request_lines import hint_of
from schemas import codec, ids
from schemas.errors import SchemaError
from schemas.messages import (
    Attempt,
    Decision,
    Failure,
    Merge,
    OnSlow,
    Plan,
    Side,
    Step,
    Trigger,
    Verdict,
)
from schemas.peek import peek_tenant
from schemas.topics import REQUESTS
from streams.registry import View
from streams.router.admission import Admitted, admit
from streams.router.plan import Planned
from streams.router.planner import Planner, Purse

Origin = Literal["assumed", "given", "live"]
"""Where the figures of the capabilities come from: nowhere, a file, or the heartbeats of now."""


class ShownVerdict(msgspec.Struct, frozen=True):
    """A verdict with every key."""

    level: str
    reasons: tuple[str, ...]
    masked: bool


class ShownAttempt(msgspec.Struct, frozen=True):
    """An attempt with every key; `max_cost` is the most that it may cost."""

    side: Side
    capability: str
    triggers: tuple[Trigger, ...]
    max_cost: float


class ShownStep(msgspec.Struct, frozen=True):
    """A step of the plan; `side` is where its first attempt goes, `inputs` are references, no payload."""

    name: str
    capability: str
    side: Side
    after: tuple[str, ...]
    inputs: dict[str, str]
    attempts: tuple[ShownAttempt, ...]
    threshold: float | None
    slow_ms: int | None
    on_slow: OnSlow


class ShownReservation(msgspec.Struct, frozen=True):
    """What is set aside for one subtask."""

    subtask: str
    cost: float


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """One request and what the router decides on it. `line` is its place in what was read.

    `decisions` are the very records that travel in the Result. `cost_bound` is what all attempts together
    may cost. A bad line has an `error` and nothing else. Nothing of the payload is in it.
    """

    id: str
    line: int
    task: str | None = None
    tenant: str | None = None
    cloud_allowed: bool = False
    privacy: ShownVerdict | None = None
    steps: tuple[ShownStep, ...] = ()
    decisions: tuple[Decision, ...] = ()
    merge: Merge | None = None
    rules: str
    registry: Origin
    budget: Purse
    deadline_ms: int | None = None
    cost_bound: float = 0.0
    reservations: tuple[ShownReservation, ...] = ()
    error: Failure | None = None


class Line(NamedTuple):
    """One request as a record of `requests` would bring it. `timestamp` in ms."""

    value: bytes
    offset: int
    timestamp: int
    topic: str = REQUESTS
    partition: int = 0
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = (("content-type", b"application/json"),)


class Setting(NamedTuple):
    """What the decisions are made by, beside the rules."""

    view: View
    origin: Origin
    now: int
    purse: Purse = "open"


def explain_line(planner: Planner, setting: Setting, number: int, raw: bytes) -> Explained:
    """What the router decides on the request in `raw`; a line that is none is answered with its error."""
    line = raw.strip()
    try:
        admitted = admitted_of(number, line, setting.now)
    except SchemaError as error:
        return _unreadable(planner, setting, number, line, error)
    return shown(decided(planner, setting, admitted), admitted, setting, number)


def admitted_of(number: int, raw: bytes, at: int) -> Admitted:
    """The request in `raw`, accepted at `at`; without an id of its own it is `line-NUMBER`.

    Raises:
        Malformed: it is none.
    """
    admitted = admit(Line(raw, number, at))
    if admitted.named:
        return admitted
    name = f"line-{number}"
    scope = ids.scoped(admitted.request.tenant, name)
    return msgspec.structs.replace(admitted, id=name, scope=scope)


def decided(planner: Planner, setting: Setting, admitted: Admitted) -> Planned:
    """The plan, or the refusal, of `admitted`."""
    return planner.decide(admitted, setting.view, setting.now, setting.purse)


def shown(planned: Planned, admitted: Admitted, setting: Setting, number: int) -> Explained:
    """`planned` as a record."""
    plan, request = planned.plan, admitted.request
    info = plan.request
    error = None if plan.answer is None else plan.answer.error
    # A name that the rules do not know is payload: a person's, where a producer mixed up its fields.
    unknown = error is not None and error.code == "unknown_task"
    return Explained(
        id=admitted.id,
        line=number,
        task=None if unknown else info.task or request.task,
        tenant=request.tenant,
        cloud_allowed=info.privacy.cloud_allowed,
        privacy=_verdict(info.privacy),
        steps=tuple(_step(step) for step in plan.steps if step.attempts),
        decisions=plan.decisions,
        merge=plan.merge,
        rules=plan.rules,
        registry=setting.origin,
        budget=setting.purse,
        deadline_ms=info.deadline - info.accepted,
        cost_bound=bound_of(plan),
        reservations=tuple(ShownReservation(each.subtask, each.cost) for each in planned.reservations),
        error=error,
    )


def bound_of(plan: Plan) -> float:
    """What all attempts of a plan together may cost."""
    return float(round(sum(attempt.max_cost for step in plan.steps for attempt in step.attempts), 9))


def _unreadable(planner: Planner, setting: Setting, number: int, raw: bytes, error: SchemaError) -> Explained:
    return Explained(
        id=codec.peek_id(raw, Line(raw, number, 0).headers) or f"line-{number}",
        line=number,
        tenant=peek_tenant(raw, Line(raw, number, 0).headers),
        rules=planner.rules.version,
        registry=setting.origin,
        budget=setting.purse,
        error=Failure(code=error.code, message=f"line {number}: {error}{hint_of(raw)}"),
    )


def _verdict(verdict: Verdict) -> ShownVerdict:
    return ShownVerdict(verdict.level, verdict.reasons, verdict.masked)


def _step(step: Step) -> ShownStep:
    return ShownStep(
        name=step.name,
        capability=step.attempts[0].capability,
        side=step.attempts[0].side,
        after=step.after,
        inputs=step.inputs,
        attempts=tuple(map(_attempt, step.attempts)),
        threshold=step.threshold,
        slow_ms=step.slow_ms,
        on_slow=step.on_slow,
    )


def _attempt(attempt: Attempt) -> ShownAttempt:
    return ShownAttempt(attempt.side, attempt.capability, attempt.triggers, attempt.max_cost)
