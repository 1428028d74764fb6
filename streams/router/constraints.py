"""Constraints: named rules that forbid a side for a step. They come before any score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from schemas.messages import Side, Verdict
from schemas.rules import TaskRule
from streams.registry.figures import Target
from streams.router.prices import fits
from streams.router.shapes import shape_of
from streams.router.tokens import tokens_of

SIDES: tuple[Side, Side] = ("local", "cloud")

Purse = Literal["open", "spent", "away"]
"""What the budget said for a request: it has enough, it has not, or nobody knows."""


class Case(msgspec.Struct, frozen=True):
    """One step of one request on one capability, as constraints and score see it.

    `left_ms` is the time to the deadline, `inputs` what is known of the step's inputs, `later` the names
    that come with earlier steps' outputs, `max_tokens` the longest input that stays local, `latency_ms` the
    p90 that a side must keep; `local` and `cloud` are its live targets, None where nobody offers it, and
    `local_bound` and `cloud_bound` the most that a call costs there, None where nobody knows. `left_cost` is
    what is left of the request's `max_cost`, `left_budget` of the budget, None where nobody says.
    `unopened` names the constraint that closes the cloud to what lies in an object store. `foreign`: a
    decomposer named the capability, and the rules do not.
    """

    task: TaskRule
    verdict: Verdict
    left_ms: int
    inputs: Mapping[str, Any] = {}
    max_tokens: int | None = None
    local: Target | None = None
    cloud: Target | None = None
    capability: str = ""
    params: Mapping[str, Any] = {}
    later: frozenset[str] = frozenset()
    latency_ms: int | None = None
    local_bound: float | None = 0.0
    cloud_bound: float | None = 0.0
    left_cost: float | None = None
    left_budget: float | None = None
    purse: Purse = "open"
    foreign: bool = False
    unopened: str | None = None

    def target(self, side: Side) -> Target | None:
        return self.local if side == "local" else self.cloud

    def bound(self, side: Side) -> float | None:
        return self.local_bound if side == "local" else self.cloud_bound

    @property
    def most(self) -> float | None:
        """What a call is measured against: what is left to spend, None where nobody says."""
        return self.left_cost if self.left_cost is not None else self.left_budget

    @property
    def is_free(self) -> bool:
        """Whether no side costs anything."""
        return self.local_bound == 0.0 and self.cloud_bound == 0.0


class Constraint(Protocol):
    """A rule with a name. `forbids` returns the sides that it closes.

    Where every side that a step could take is closed, those closed only by rules whose `gives_way` is set
    open again: a slow answer is better than none, and a side without calls can never show that it has
    recovered.
    """

    @property
    def name(self) -> str: ...
    @property
    def gives_way(self) -> bool: ...
    def forbids(self, case: Case, /) -> Sequence[Side]: ...


class Rule(NamedTuple):
    """A Constraint made of a function."""

    name: str
    forbids: Callable[[Case], Sequence[Side]]
    gives_way: bool = False


def privacy(case: Case) -> Sequence[Side]:
    """The verdict forbids the cloud; any level but `normal` does, so that a new one fails closed. Where
    everything that was found may be masked, the cloud may have the masked request."""
    return () if case.verdict.cloud_allowed else ("cloud",)


def no_cloud_store(case: Case) -> Sequence[Side]:
    """The step takes what lies in an object store, and there is none that the cloud reads."""
    return ("cloud",) if case.unopened == "no_cloud_store" else ()


def object_unread(case: Case) -> Sequence[Side]:
    """The step takes what lies in an object store and was not read and examined there."""
    return ("cloud",) if case.unopened == "object_unread" else ()


def live(case: Case) -> Sequence[Side]:
    """Nobody offers the capability, and the task does not say that it starts on demand."""
    if (case.task.scale_to_zero and not case.foreign) or (case.local is not None and case.cloud is not None):
        return ()
    return [side for side in SIDES if case.target(side) is None]


def failing(case: Case) -> Sequence[Side]:
    """The breaker is open because calls fail."""
    local, cloud = case.local, case.cloud
    return _closed(
        local is not None and local.gate == "failing", cloud is not None and cloud.gate == "failing"
    )


def away(case: Case) -> Sequence[Side]:
    """The breaker is open because the service behind every worker is away."""
    local, cloud = case.local, case.cloud
    return _closed(local is not None and local.gate == "away", cloud is not None and cloud.gate == "away")


def slow(case: Case) -> Sequence[Side]:
    """The breaker is open because calls take longer than `slow_ms`."""
    local, cloud = case.local, case.cloud
    return _closed(local is not None and local.gate == "slow", cloud is not None and cloud.gate == "slow")


def budget(case: Case) -> Sequence[Side]:
    """The budget has not enough left for what a call may cost, or nobody knows whether it has."""
    if case.purse == "open" or case.is_free:
        return ()
    return [side for side in SIDES if case.bound(side) != 0.0]


def max_cost(case: Case) -> Sequence[Side]:
    """A call may cost more than is left of the request's `max_cost`."""
    left = case.left_cost
    if left is None or case.is_free:
        return ()
    return [side for side in SIDES if not fits(case.bound(side) or 0.0, left)]


def unknown_cost(case: Case) -> Sequence[Side]:
    """A call costs, and nobody knows how much at most."""
    return _closed(case.local_bound is None, case.cloud_bound is None)


def input_schema(case: Case) -> Sequence[Side]:
    """The inputs do not fit the card's `input_schema`, as far as they are known."""
    local, cloud = schema_of(case.local), schema_of(case.cloud)
    unfit = bool(local) and misfit(case, local) is not None
    if local == cloud:
        return SIDES if unfit else ()
    return _closed(unfit, bool(cloud) and misfit(case, cloud) is not None)


def schema_of(target: Target | None) -> dict[str, Any]:
    return _NO_SCHEMA if target is None else target.figures.input_schema


def misfit(case: Case, schema: dict[str, Any]) -> str | None:
    """The name of the input that does not fit, None where all do."""
    return shape_of(schema).misfit(case.inputs, case.params, case.later)


def max_qps(case: Case) -> Sequence[Side]:
    """The target has had all the calls that it takes in a second."""
    local = case.local is not None and case.local.throttled
    cloud = case.cloud is not None and case.cloud.throttled
    return _closed(local, cloud)


def latency(case: Case) -> Sequence[Side]:
    """The target does not keep the p90 that the step asks for."""
    most = case.latency_ms
    if most is None:
        return ()
    return _closed(_is_slower(case.local, most), _is_slower(case.cloud, most))


def long_input(case: Case) -> Sequence[Side]:
    """The input is longer than the local model takes."""
    limit = case.max_tokens
    return () if limit is None or tokens_of(case.inputs, limit) <= limit else ("local",)


def backlog(case: Case) -> Sequence[Side]:
    """The queue alone takes longer than what is left: one more call would be work for nobody."""
    local, cloud, left = case.local, case.cloud, case.left_ms
    return _closed(
        local is not None and local.wait_ms is not None and local.wait_ms > left,
        cloud is not None and cloud.wait_ms is not None and cloud.wait_ms > left,
    )


def deadline(case: Case) -> Sequence[Side]:
    """Queue and service together are predicted to take longer than what is left."""
    local, cloud, left = case.local, case.cloud, case.left_ms
    return _closed(
        local is not None and local.predicted_ms is not None and local.predicted_ms > left,
        cloud is not None and cloud.predicted_ms is not None and cloud.predicted_ms > left,
    )


def _closed(local: bool, cloud: bool) -> Sequence[Side]:
    if not (local or cloud):
        return ()
    return SIDES if local and cloud else ("local",) if local else ("cloud",)


def _is_slower(target: Target | None, most: int) -> bool:
    return target is not None and target.figures.p90_ms is not None and target.figures.p90_ms > most


CONSTRAINTS: tuple[Constraint, ...] = (
    Rule("privacy", privacy),
    Rule("no_cloud_store", no_cloud_store),
    Rule("object_unread", object_unread),
    Rule("no_live_capability", live),
    Rule("breaker_failing", failing),
    Rule("breaker_away", away),
    Rule("unknown_cost", unknown_cost),
    Rule("max_cost", max_cost),
    Rule("budget", budget),
    Rule("max_local_tokens", long_input),
    Rule("input_schema", input_schema),
    Rule("max_qps", max_qps),
    Rule("backlog", backlog),
    Rule("breaker_slow", slow, gives_way=True),
    Rule("latency", latency, gives_way=True),
    Rule("deadline", deadline, gives_way=True),
)
"""The rules in the order in which they are named."""


_NO_SCHEMA: dict[str, Any] = {}


class Closed(NamedTuple):
    """What the constraints said: `reasons` by side, and the sides that firm rules closed."""

    reasons: dict[str, tuple[str, ...]]
    firmly: frozenset[str]


NOTHING_CLOSED = Closed({}, frozenset())


Asked = tuple[str, Callable[[Case], Sequence[Side]], bool]
"""A constraint taken apart, so that asking is quick: its name, its question, whether it gives way."""


def asked(constraints: Iterable[Constraint]) -> tuple[Asked, ...]:
    """The constraints as `examine` asks them."""
    return tuple([(each.name, each.forbids, each.gives_way) for each in constraints])


def examine(case: Case, constraints: Sequence[Asked]) -> Closed:
    """Ask every constraint."""
    reasons: dict[str, tuple[str, ...]] | None = None
    firmly: set[str] = set()
    for name, forbids, gives_way in constraints:
        sides = forbids(case)
        if not sides:
            continue
        if reasons is None:
            reasons = {}
        for side in sides:
            reasons[side] = (*reasons.get(side, ()), name)
            if not gives_way:
                firmly.add(side)
    return NOTHING_CLOSED if reasons is None else Closed(reasons, frozenset(firmly))
