"""The report of a backtest, as JSON has it."""

from __future__ import annotations

from typing import Literal

import msgspec

Move = Literal[
    "stays_local",
    "stays_cloud",
    "local_to_cloud",
    "cloud_to_local",
    "newly_refused",
    "newly_answered",
    "still_refused",
    "added",
    "dropped",
]
MOVED: tuple[Move, ...] = (
    "local_to_cloud",
    "cloud_to_local",
    "newly_refused",
    "newly_answered",
    "added",
    "dropped",
)


class Pair(msgspec.Struct, frozen=True):
    """A number under the old rules and under the new ones; None where nothing tells."""

    old: float | None
    new: float | None


class Latency(msgspec.Struct, frozen=True):
    """In ms, of the `requests` whose times are known under both; queue and service, without the hops."""

    requests: int
    p50: Pair
    p95: Pair


class Quality(msgspec.Struct, frozen=True):
    """Share of right answers of the `requests` where feedback tells under both: their own, or for those
    `estimated` under one of the two that of others, at least `least_samples` of them. Of `unknown` ones,
    answered under both, nothing tells; `unknown_moved` of them are answered by another side now.
    """

    requests: int
    share: Pair
    estimated: int
    least_samples: int | None
    unknown: int
    unknown_moved: int


class Row(msgspec.Struct, frozen=True):
    """One task, or all. `moves` counts steps by who answers, `first` by where they are sent first; `unsure`
    of them are guessed; `moved` is the share of steps that changed. Costs are sums over the requests,
    `bound` is None where a price is not known.
    """

    requests: int
    steps: int
    moves: dict[str, int]
    first: dict[str, int]
    moved: float
    unsure: int
    refused: Pair
    cost: Pair
    bound: Pair
    latency_ms: Latency
    quality: Quality
    may_leave_now: int
    must_stay_now: int
    over_budget: Pair
    examples: dict[str, list[str]]


class TargetRow(msgspec.Struct, frozen=True):
    """What was recorded of one target."""

    target: str
    answers: int
    p50_ms: float
    p95_ms: float
    mean_cost: float | None


class JudgedRow(msgspec.Struct, frozen=True):
    """What feedback says of the answers of one task that the same sides gave: of all (`confidence` None), or
    of those of which the edge was so sure, from the first bound to below the second.
    """

    task: str | None
    sides: dict[str, str]
    confidence: tuple[float, float] | None
    share: float
    samples: int


class Compared(msgspec.Struct, frozen=True):
    """One of the two that are compared: `file`, or `recorded`; its rules' version and its dearest day."""

    name: str
    rules: str | None
    most_spent_a_day: float | None = None


class Records(msgspec.Struct, frozen=True):
    """How many records there were, and what of."""

    read: int
    compared: int
    bad: int
    without_result: int
    with_feedback: int
    cached: int


class Report(msgspec.Struct, frozen=True):
    """The whole."""

    old: Compared
    new: Compared
    registry: str
    records: Records
    total: Row
    tasks: dict[str, Row]
    targets: list[TargetRow]
    judged: list[JudgedRow]
