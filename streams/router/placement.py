"""Where one step runs: constraints, then the fixed side, confidence or the score; its attempts in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from schemas.messages import Attempt, Decision, Side, Trigger
from schemas.rules import StepRule
from streams.router.constraints import SIDES, Asked, Case, Closed, examine
from streams.router.prices import Option, Prices, fits
from streams.router.score import score

DEFAULT_THRESHOLD = 0.9
DEFAULT_SLOW_MS = 500
EXPECTED = 0.5
"""A local answer that is accepted with less than this chance is not waited for."""

_FIRST: tuple[Trigger, ...] = ("first",)
_WEAK: tuple[Trigger, ...] = ("weak", "failed", "silent")
_FALLBACK: tuple[Trigger, ...] = ("failed", "silent")

Reasons = dict[str, tuple[str, ...]]


class Placed(NamedTuple):
    """A step's attempts (none where no side is left), its threshold, the decision.

    `threshold` is the confidence below which the `weak` attempt starts. It is given without such an attempt,
    too, where the rules name one or leave the side open: the aggregator marks a weak answer for which no
    better place was allowed.
    """

    attempts: tuple[Attempt, ...]
    threshold: float | None
    decision: Decision


class _Choice(NamedTuple):
    decision: Decision
    order: Sequence[Option]


class _Open(NamedTuple):
    """The options that are left, by side and best first; why the other sides are closed; what gave way."""

    sides: dict[Side, list[Option]]
    reasons: Reasons
    note: str | None


def place(
    step: StepRule,
    cases: Sequence[Case],
    prices: Prices,
    constraints: Sequence[Asked],
    expected: float | None = None,
    lean: bool = False,
) -> Placed:
    """Place `step`. `cases` are that of its capability and those of its alternatives; `expected` is the
    predicted chance that the local answer will be accepted; `lean` leaves out later attempts that cost."""
    found = _open(step, cases, prices, constraints)
    if not found.sides:
        return Placed((), None, _refused(step, found.reasons))
    choice = _choose(step, cases[0], found, expected)
    if len(cases) > 1:
        decision = _with(choice.decision, capability=choice.order[0].capability)
        choice = _Choice(decision, choice.order)
    if lean:
        order = choice.order
        choice = _Choice(choice.decision, [order[0], *(each for each in order[1:] if not each.bound)])
    return _placed(step, cases[0], choice)


def threshold_of(step: StepRule, local: Option | None) -> float | None:
    """The confidence a local answer must have: the rules', else DEFAULT_THRESHOLD where it is calibrated.

    None where neither holds: a confidence that nobody calibrated and no rule trusts decides nothing.
    """
    if step.local_threshold is not None:
        return step.local_threshold
    return DEFAULT_THRESHOLD if _is_calibrated(local) else None


def slow_ms_of(step: StepRule, attempts: int) -> int | None:
    """After how long the `silent` attempt starts, None where nothing waits for it."""
    if step.slow_ms is not None:
        return step.slow_ms
    return DEFAULT_SLOW_MS if attempts > 1 else None


def _open(step: StepRule, cases: Sequence[Case], prices: Prices, constraints: Sequence[Asked]) -> _Open:
    """The options that the constraints leave; where there are none, those that no firm rule closes."""
    candidates: Sequence[Side] = SIDES if step.side == "auto" else (step.side,)
    closed = [examine(case, constraints) for case in cases]
    if len(cases) == 1 and not closed[0].reasons:
        case = cases[0]
        return _Open(
            {side: [prices.option(side, case.capability, case.target(side))] for side in candidates}, {}, None
        )
    places = [(side, case, said) for side in candidates for case, said in zip(cases, closed, strict=True)]
    left = [place for place in places if place[0] not in place[2].reasons]
    note = None
    if not left:
        left = [place for place in places if place[0] not in place[2].firmly]
        opened = sorted({name for side, _, said in left for name in said.reasons[side]})
        note = f"{', '.join(opened)} gave way: no side was left" if opened else None
    options: dict[Side, list[Option]] = {}
    for side, case, _ in left:
        options.setdefault(side, []).append(prices.option(side, case.capability, case.target(side)))
    for side, found in options.items():
        if len(found) > 1:
            options[side] = _ranked(found, cases[0])
    reasons = {side: names for side, names in _reasons(closed).items() if side not in options}
    return _Open(options, reasons, note)


def _reasons(closed: Sequence[Closed]) -> Reasons:
    """Why each side is closed, over all capabilities that the step may use."""
    if len(closed) == 1:
        return closed[0].reasons
    merged: dict[str, dict[str, None]] = {}
    for said in closed:
        for side, names in said.reasons.items():
            merged.setdefault(side, {}).update(dict.fromkeys(names))
    return {side: tuple(names) for side, names in merged.items()}


def _ranked(options: list[Option], case: Case) -> list[Option]:
    """The options of one side, best first; of equals the one named first in the rules."""
    scores = score(options, case.left_ms, case.task.weights, case.most).scores
    order = sorted(range(len(options)), key=lambda index: -scores[index])
    return [options[index] for index in order]


def _choose(step: StepRule, case: Case, found: _Open, expected: float | None) -> _Choice:
    """The decision and the options in the order in which they are tried."""
    sides, reasons, note = found.sides, found.reasons, found.note
    if step.side != "auto":
        decision = Decision(step=step.name, side=step.side, rule="fixed_side", forbidden=reasons, note=note)
        return _Choice(decision, sides[step.side])
    if len(sides) == 1:
        ((side, options),) = sides.items()
        other = "cloud" if side == "local" else "local"
        decision = Decision(step=step.name, side=side, rule=reasons[other][0], forbidden=reasons, note=note)
        return _Choice(decision, options)
    return _between(step, case, found, expected)


def _between(step: StepRule, case: Case, found: _Open, expected: float | None) -> _Choice:
    """Both sides are allowed: the calibrated local model first unless its answer is expected to be refused,
    else by score."""
    local, cloud = found.sides["local"], found.sides["cloud"]
    threshold = threshold_of(step, local[0])
    if threshold is not None and expected is not None and expected < EXPECTED:
        decision = Decision(
            step=step.name,
            side="cloud",
            rule="predicted_weak",
            forbidden=found.reasons,
            note=found.note,
            expected=expected,
        )
        return _Choice(decision, (*cloud, *local))
    if _is_calibrated(local[0]):
        decision = Decision(
            step=step.name,
            side="local",
            rule="confidence_first",
            forbidden=found.reasons,
            threshold=threshold,
            note=found.note,
            expected=expected,
        )
        return _Choice(decision, _in_turn(local, cloud))
    scored = score((local[0], cloud[0]), case.left_ms, case.task.weights, case.most)
    first: Side = SIDES[scored.best]
    decision = Decision(
        step=step.name,
        side=first,
        rule="score",
        forbidden=found.reasons,
        scores=dict(zip(SIDES, scored.scores, strict=True)),
        factors=dict(zip(SIDES, scored.factors, strict=True)),
        threshold=threshold if first == "local" else None,
        note=found.note,
        expected=expected,
    )
    return _Choice(decision, _in_turn(local, cloud) if first == "local" else _in_turn(cloud, local))


def _in_turn(first: list[Option], second: list[Option]) -> Sequence[Option]:
    """The best of each side, then what else there is."""
    return (first[0], second[0], *first[1:], *second[1:])


def _placed(step: StepRule, case: Case, choice: _Choice) -> Placed:
    """The attempts of a choice: together they cost at most what is left of the request's `max_cost`."""
    order = choice.order if case.left_cost is None else _affordable(choice.order, case.left_cost)
    first, decision = order[0], choice.decision
    threshold = threshold_of(step, first) if first.side == "local" else None
    escalates = len(order) > 1 and order[1].side == "cloud"
    if step.side != "auto" and step.local_threshold is None:
        threshold = None
    reserved = first.bound or 0.0
    attempts = [Attempt(side=first.side, triggers=_FIRST, capability=first.capability, max_cost=reserved)]
    for index, option in enumerate(order[1:]):
        triggers = _WEAK if index == 0 and escalates and threshold is not None else _FALLBACK
        bound = option.bound or 0.0
        reserved += bound
        attempts.append(
            Attempt(side=option.side, triggers=triggers, capability=option.capability, max_cost=bound)
        )
    if reserved:
        decision = _with(decision, reserved=reserved)
    return Placed(tuple(attempts), threshold, decision)


def _affordable(order: Sequence[Option], left: float) -> list[Option]:
    kept: list[Option] = []
    for option in order:
        bound = option.bound or 0.0
        if fits(bound, left):
            kept.append(option)
            left -= bound
    return kept


def _refused(step: StepRule, reasons: Reasons) -> Decision:
    first: Side = "local" if step.side == "auto" else step.side
    return Decision(step=step.name, rule=reasons[first][0], forbidden=reasons)


def _is_calibrated(local: Option | None) -> bool:
    return local is not None and local.target is not None and local.target.figures.calibrated


def _with(decision: Decision, **changes: Any) -> Decision:
    return msgspec.structs.replace(decision, **changes)
