"""The structs that travel between processes.

All are frozen msgspec Structs, written as maps with a `type` tag and a version `v`. Times are integers in
milliseconds since the epoch on the broker's clock, durations are milliseconds, costs are in the currency of
the rules' prices. Unknown keys are ignored; new keys are optional; no key is ever retyped.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from schemas.bounds import MAX_DEADLINE_MS as MAX_DEADLINE_MS
from schemas.bounds import DeadlineMs, Money, Ratio, TaskName, Tenant, TopicName
from schemas.errors import ErrorCode

VERSION = 1
"""The version that this build writes. A reader accepts VERSION - 1 and VERSION."""

Side = Literal["local", "cloud"]
Placement = Literal["local", "cloud", "auto"]
Privacy = Literal["normal", "high"]
Status = Literal["ok", "partial", "error"]
Trigger = Literal["first", "weak", "silent", "failed"]
"""What starts an attempt: at once; a confidence below the threshold; no answer after `slow_ms`; an error."""
OnSlow = Literal["answer", "wait"]
Format = Literal["msgpack", "json"]


def _version() -> int:
    # A factory keeps `omit_defaults` from leaving `v` out of what is written.
    return VERSION


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of structs that stand inside a message and need no version of their own."""


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """Base of structs that are a whole record."""

    v: int = msgspec.field(default_factory=_version)


class Claim(Part, frozen=True, kw_only=True):
    """Where a payload above 256 KiB lies instead of in the record (CloudEvents `dataref`)."""

    dataref: str
    sha256: str
    size: Annotated[int, Meta(ge=0)]
    content_type: str | None = None


class Failure(Part, frozen=True, kw_only=True):
    """An error as the caller sees it. `message` says what, where and how to mend it, and never quotes the
    payload.
    """

    code: ErrorCode
    message: str


class Request(Message, frozen=True, kw_only=True, tag="request"):
    """What a producer asks. Either `task` names a task of the rules or `query` holds a phrase of one.

    `deadline_ms` counts from the broker's append time. Without `id` one is derived from the record's place in
    the log.
    """

    id: str | None = None
    task: TaskName | None = None
    query: str | None = None
    inputs: dict[str, Any] = {}
    params: dict[str, Any] = {}
    privacy: Privacy = "normal"
    deadline_ms: DeadlineMs | None = None
    max_cost: Money | None = None
    tenant: Tenant | None = None
    reply_to: TopicName | None = None
    claim: Claim | None = None


class Verdict(Part, frozen=True, kw_only=True):
    """What privacy decided: declared level or the detectors' findings, whichever is higher, and why."""

    level: Privacy = "normal"
    reasons: tuple[str, ...] = ()


class Factor(Part, frozen=True, kw_only=True):
    """One factor of a score: its value in [0, 1] (1 is best), its weight, and `live` or `prior` as its
    source.
    """

    value: float
    weight: float
    source: Literal["live", "prior"] = "prior"


class Decision(Part, frozen=True, kw_only=True):
    """Why one step runs where it runs.

    `rule` names what decided (a constraint's name, `score`, `fixed_side`, `confidence_first`); `forbidden`
    maps a side to the names of the constraints that closed it; `scores` and `factors` are by side, empty
    where no score was needed.
    """

    step: str
    side: Side | None = None
    rule: str
    forbidden: dict[str, tuple[str, ...]] = {}
    scores: dict[str, float] = {}
    factors: dict[str, dict[str, Factor]] = {}
    threshold: float | None = None
    reserved: Money = 0.0
    note: str | None = None


class Attempt(Part, frozen=True, kw_only=True):
    """One target of a step and the triggers that start it. The subtask id ends in its index in the step's
    attempts.
    """

    side: Side
    triggers: tuple[Trigger, ...]
    capability: str
    max_cost: Money = 0.0


class Step(Part, frozen=True, kw_only=True):
    """One step of a plan.

    `inputs` maps a name to a reference: `inputs.NAME`, `query`, `params.NAME`, `steps.STEP` or
    `steps.STEP.NAME`; empty means all inputs of the request as they are. `threshold` is the confidence below
    which the `weak` attempt starts. `weight` and `priority` are the merge's.
    """

    name: str
    capability: str
    attempts: tuple[Attempt, ...]
    after: tuple[str, ...] = ()
    inputs: dict[str, str] = {}
    threshold: float | None = None
    slow_ms: int | None = None
    on_slow: OnSlow = "answer"
    weight: float | None = None
    priority: int | None = None
    max_batch: int | None = None


class Merge(Part, frozen=True, kw_only=True):
    """The strategy by name and what it is given beside the steps' weights and priorities."""

    strategy: str
    params: dict[str, Any] = {}


class RequestInfo(Part, frozen=True, kw_only=True):
    """What the aggregator must know of the request. `id` is the caller's, `deadline` and `accepted` are
    times.

    `digest` is that of the request's content (a repeated id with another digest is a conflict);
    `reply_format` is the format the request came in.
    """

    id: str
    accepted: int
    deadline: int
    task: str | None = None
    tenant: Tenant | None = None
    reply_to: str | None = None
    reply_format: Format = "msgpack"
    privacy: Verdict = Verdict()
    digest: str | None = None
    traceparent: str | None = None
    tracestate: str | None = None


class Model(Part, frozen=True, kw_only=True):
    """The model that answered."""

    name: str
    version: str


class Timings(Part, frozen=True, kw_only=True):
    """Where the time went, in ms: in topic and queue, in the model; `total` from acceptance to answer."""

    queue_ms: float = 0.0
    service_ms: float = 0.0
    total_ms: float = 0.0


class Result(Message, frozen=True, kw_only=True, tag="result"):
    """The one terminal answer. The first Result of an id is the answer.

    `output` is the merged output; `missing` names the steps without an answer; `timings` and `models` are by
    step name.
    """

    id: str
    status: Status
    output: Any = None
    confidence: Ratio | None = None
    approximate: bool = False
    warnings: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    decisions: tuple[Decision, ...] = ()
    cost: Money = 0.0
    timings: dict[str, Timings] = {}
    models: dict[str, Model] = {}
    sides: dict[str, Side] = {}
    tenant: Tenant | None = None
    task: str | None = None
    rules: str | None = None
    digest: str | None = None
    error: Failure | None = None
    claim: Claim | None = None


class Plan(Message, frozen=True, kw_only=True, tag="plan"):
    """What a request became: its steps, or the `answer` itself where there is nothing to run.

    `inputs`, `params` and `query` are the request's; they are left out where no later dispatch can need them
    (one attempt a step and no `after`).
    """

    request: RequestInfo
    rules: str
    steps: tuple[Step, ...] = ()
    merge: Merge | None = None
    inputs: dict[str, Any] = {}
    params: dict[str, Any] = {}
    query: str | None = None
    decisions: tuple[Decision, ...] = ()
    answer: Result | None = None


class Subtask(Message, frozen=True, kw_only=True, tag="subtask"):
    """One attempt of one step, as a worker gets it. `id` = scoped request id `/` step `/` side `/` attempt
    index.
    """

    id: str
    capability: str
    deadline: int
    inputs: dict[str, Any] = {}
    params: dict[str, Any] = {}
    trigger: Trigger = "first"
    tenant: Tenant | None = None
    max_batch: int | None = None
    max_cost: Money = 0.0
    traceparent: str | None = None
    tracestate: str | None = None
    claim: Claim | None = None


class Partial(Message, frozen=True, kw_only=True, tag="partial"):
    """A worker's answer to one subtask: an output or an error. `deadline` is the subtask's."""

    subtask: str
    deadline: int
    output: Any = None
    confidence: Ratio | None = None
    cost: Money = 0.0
    usage: dict[str, float] = {}
    model: Model | None = None
    timings: Timings = Timings()
    error: Failure | None = None
    claim: Claim | None = None


class Checkpoint(Message, frozen=True, kw_only=True, tag="checkpoint"):
    """An open join written again, so that its old offsets may finish: the plan, the partials so far, what was
    started.

    `started` are the ids of the subtasks already dispatched, each with its time.
    """

    plan: Plan
    partials: tuple[Partial, ...] = ()
    started: dict[str, int] = {}


class Feedback(Message, frozen=True, kw_only=True, tag="feedback"):
    """What a caller says of an answer: `right`, `wrong`, or a score in [0, 1]."""

    id: str
    verdict: Literal["right", "wrong"] | None = None
    score: Ratio | None = None
    tenant: Tenant | None = None
    label: Any = None


JoinEvent = Plan | Partial | Checkpoint
"""What `joins` holds."""
