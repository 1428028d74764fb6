"""What the messages are made of: the aliases, the bases, and the structs that stand inside a message."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from schemas.bounds import Money, Ratio, Tenant
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


class Verdict(Part, frozen=True, kw_only=True):
    """What privacy decided: declared level or the detectors' findings, whichever is higher, and why.

    `reasons` are `declared`, `tenant`, `verdict_failed`, or kinds of findings (`email`, `person`), never what
    was found. `masked`: the level is `high`, and yet the cloud may have the request with every finding
    replaced by a placeholder.
    """

    level: Privacy = "normal"
    reasons: tuple[str, ...] = ()
    masked: bool = False

    @property
    def cloud_allowed(self) -> bool:
        """Whether anything of the request may go to the cloud, be it masked."""
        return self.level == "normal" or self.masked


class Examination(Part, frozen=True, kw_only=True):
    """How payloads are examined. `detectors` None: all that are built in; empty: none, the declared level
    alone counts. `mask` are the kinds of findings that may be masked, `ignore` those that count for nothing.
    """

    detectors: tuple[str, ...] | None = None
    mask: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


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
    where no score was needed. `capability` is the one chosen where the step allows several; `expected` is
    the predicted chance that the local answer will be accepted; `reserved` is the most that the step may
    cost, set aside where there is a budget.
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
    capability: str | None = None
    expected: Ratio | None = None


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
    which the `weak` attempt starts. `weight` and `priority` are the merge's. `cache` is the key under which
    the step's answer may be kept for others, None where it may not.
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
    cache: str | None = None


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
