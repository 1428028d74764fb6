"""Constraints: named rules that forbid a side for a step. They come before any score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from schemas.messages import Side, Verdict
from schemas.rules import TaskRule
from streams.registry.figures import Target
from streams.router.tokens import tokens_of

SIDES: tuple[Side, Side] = ("local", "cloud")


class Case(msgspec.Struct, frozen=True):
    """One step of one request, as constraints and score see it.

    `left_ms` is the time to the deadline, `inputs` what is known of the step's inputs, `max_tokens` the
    longest input that stays local; `local` and `cloud` are its live targets, None where nobody offers it.
    """

    task: TaskRule
    verdict: Verdict
    left_ms: int
    inputs: Mapping[str, Any] = {}
    max_tokens: int | None = None
    local: Target | None = None
    cloud: Target | None = None

    def target(self, side: Side) -> Target | None:
        return self.local if side == "local" else self.cloud


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
    """The verdict forbids the cloud; any level but `normal` does, so that a new one fails closed."""
    return () if case.verdict.level == "normal" else ("cloud",)


def live(case: Case) -> Sequence[Side]:
    """Nobody offers the capability, and the task does not say that it starts on demand."""
    if case.task.scale_to_zero or (case.local is not None and case.cloud is not None):
        return ()
    return [side for side in SIDES if case.target(side) is None]


def failing(case: Case) -> Sequence[Side]:
    """The breaker is open because calls fail."""
    return _gated(case, "failing")


def slow(case: Case) -> Sequence[Side]:
    """The breaker is open because calls take longer than `slow_ms`."""
    return _gated(case, "slow")


def long_input(case: Case) -> Sequence[Side]:
    """The input is longer than the local model takes."""
    limit = case.max_tokens
    return () if limit is None or tokens_of(case.inputs, limit) <= limit else ("local",)


def backlog(case: Case) -> Sequence[Side]:
    """The queue alone takes longer than what is left: one more call would be work for nobody."""
    closed: list[Side] = []
    for side in SIDES:
        target = case.target(side)
        wait = None if target is None else target.figures.wait_ms()
        if wait is not None and wait > case.left_ms:
            closed.append(side)
    return closed


def deadline(case: Case) -> Sequence[Side]:
    """Queue and service together are predicted to take longer than what is left."""
    closed: list[Side] = []
    for side in SIDES:
        target = case.target(side)
        predicted = None if target is None else target.figures.predicted_ms()
        if predicted is not None and predicted > case.left_ms:
            closed.append(side)
    return closed


def _gated(case: Case, gate: str) -> Sequence[Side]:
    local = case.local is not None and case.local.gate == gate
    cloud = case.cloud is not None and case.cloud.gate == gate
    if not (local or cloud):
        return ()
    return SIDES if local and cloud else ("local",) if local else ("cloud",)


CONSTRAINTS: tuple[Constraint, ...] = (
    Rule("privacy", privacy),
    Rule("no_live_capability", live),
    Rule("breaker_failing", failing),
    Rule("max_local_tokens", long_input),
    Rule("backlog", backlog),
    Rule("breaker_slow", slow, gives_way=True),
    Rule("deadline", deadline, gives_way=True),
)
"""The rules in the order in which they are named; budget and prices are to join them here."""


class Closed(NamedTuple):
    """What the constraints said: `reasons` by side, and the sides that firm rules closed."""

    reasons: dict[str, tuple[str, ...]]
    firmly: frozenset[str]


NOTHING_CLOSED = Closed({}, frozenset())


def examine(case: Case, constraints: Iterable[Constraint]) -> Closed:
    """Ask every constraint."""
    reasons: dict[str, tuple[str, ...]] | None = None
    firmly: set[str] = set()
    for constraint in constraints:
        sides = constraint.forbids(case)
        if not sides:
            continue
        if reasons is None:
            reasons = {}
        for side in sides:
            reasons[side] = (*reasons.get(side, ()), constraint.name)
            if not constraint.gives_way:
                firmly.add(side)
    return NOTHING_CLOSED if reasons is None else Closed(reasons, frozenset(firmly))
