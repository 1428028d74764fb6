"""The structs that travel between processes.

All are frozen msgspec Structs, written as maps with a `type` tag and a version `v`. Times are integers in
milliseconds since the epoch on the broker's clock, durations are milliseconds, costs are in the currency of
the rules' prices. Unknown keys are ignored; new keys are optional; no key is ever retyped.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from schemas.bounds import MAX_DEADLINE_MS, DeadlineMs, Money, Ratio, TaskName, Tenant, TopicName
from schemas.parts import (
    VERSION,
    Attempt,
    Claim,
    Decision,
    Examination,
    Factor,
    Failure,
    Format,
    Merge,
    Message,
    Model,
    OnSlow,
    Part,
    Placement,
    Privacy,
    RequestInfo,
    Side,
    Status,
    Step,
    Timings,
    Trigger,
    Verdict,
)

__all__ = [
    "MAX_DEADLINE_MS",
    "VERSION",
    "Attempt",
    "Cancel",
    "Checkpoint",
    "Claim",
    "Decision",
    "Examination",
    "Factor",
    "Failure",
    "Feedback",
    "Format",
    "JoinEvent",
    "Merge",
    "Message",
    "Model",
    "OnSlow",
    "Part",
    "Partial",
    "Placement",
    "Plan",
    "Privacy",
    "Request",
    "RequestInfo",
    "Result",
    "Side",
    "Status",
    "Step",
    "Subtask",
    "Timings",
    "Trigger",
    "Verdict",
]


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


class Result(Message, frozen=True, kw_only=True, tag="result"):
    """The one terminal answer. The first Result of an id is the answer.

    `privacy` is the verdict that held; `cached` says that the output was computed for an equal request, and
    `age_ms` how long ago where it is older than answers are kept for. `output` is the merged output, or lies
    at `claim` where it is too large for a record; `missing` names the steps without an answer; `timings` and
    `models` are by step name. `degraded` says why the answer is less than the best that was asked for: words
    of DEGRADED.
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
    privacy: Verdict | None = None
    cached: bool = False
    age_ms: Annotated[int, Meta(ge=0)] | None = None
    degraded: tuple[str, ...] = ()


class Plan(Message, frozen=True, kw_only=True, tag="plan"):
    """What a request became: its steps, or the `answer` itself where there is nothing to run.

    `inputs`, `params` and `query` are the request's; they are left out where no later dispatch can need them
    (one attempt a step and no `after`). `cache` is the key under which the whole answer may be kept, `mask`
    maps each placeholder to what it stands for in what the cloud gets, `examination` says how the inputs of
    later steps are examined before they go there. `stand_in` is an older answer to an equal request, which is
    given where the steps have none.
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
    cache: str | None = None
    mask: dict[str, str] = {}
    examination: Examination | None = None
    stand_in: Result | None = None


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
    cached: bool = False


class Checkpoint(Message, frozen=True, kw_only=True, tag="checkpoint"):
    """An open join written again, so that its old offsets may finish: the plan, the partials so far, what was
    started.

    `started` are the ids of the subtasks already dispatched, each with its time.
    """

    plan: Plan
    partials: tuple[Partial, ...] = ()
    started: dict[str, int] = {}


class Cancel(Message, frozen=True, kw_only=True, tag="cancel"):
    """A caller no longer wants the answer: what has not started is not started, and the request is answered
    `cancelled` unless it is answered already. Keyed by the scoped id.
    """

    id: str
    tenant: Tenant | None = None


class Feedback(Message, frozen=True, kw_only=True, tag="feedback"):
    """What a caller says of an answer: `right`, `wrong`, or a score in [0, 1]."""

    id: str
    verdict: Literal["right", "wrong"] | None = None
    score: Ratio | None = None
    tenant: Tenant | None = None
    label: Any = None


DEGRADED: tuple[str, ...] = (
    "cloud_away",
    "cloud_slow",
    "cloud_failed",
    "cloud_refused",
    "over_budget",
    "low_confidence",
    "stale_cache",
    "parts_missing",
)
"""What `Result.degraded` may say: no live worker in the cloud or its breaker is open; it did not answer in
time; it answered with an error; a rule or the privacy verdict closed it; its price was not to be had; the
answer is below its threshold and nothing better came; an older cached answer stands in; some steps are
missing.
"""

JoinEvent = Plan | Partial | Checkpoint
"""What `joins` holds."""
