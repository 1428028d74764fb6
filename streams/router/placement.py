"""Where one step runs: constraints, then the fixed side, confidence or the score; its attempts in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from schemas.messages import Attempt, Decision, Side, Trigger
from schemas.rules import StepRule
from streams.router.constraints import SIDES, Case, Closed, Constraint, examine
from streams.router.score import score

DEFAULT_THRESHOLD = 0.9
DEFAULT_SLOW_MS = 500


class Placed(NamedTuple):
    """A step's attempts (none where no side is left), the threshold of its `weak` attempt, the decision."""

    attempts: tuple[Attempt, ...]
    threshold: float | None
    decision: Decision


class _Choice(NamedTuple):
    decision: Decision
    sides: tuple[Side, ...]


def place(
    step: StepRule, case: Case, constraints: Iterable[Constraint], max_cost: float | None = None
) -> Placed:
    """Place `step`; `max_cost` is the request's, for the score."""
    closed = examine(case, constraints)
    choice = _choose(step, case, closed, max_cost)
    sides, capability = choice.sides, step.capability
    if not sides:
        return Placed((), None, choice.decision)
    first = Attempt(
        side=sides[0], triggers=("first",), capability=capability, max_cost=_bound(case, sides[0])
    )
    if len(sides) == 1:
        return Placed((first,), None, choice.decision)
    threshold = threshold_of(step, case) if sides[0] == "local" else None
    triggers: tuple[Trigger, ...] = (
        ("failed", "silent") if threshold is None else ("weak", "failed", "silent")
    )
    second = Attempt(side=sides[1], triggers=triggers, capability=capability, max_cost=_bound(case, sides[1]))
    return Placed((first, second), threshold, choice.decision)


def threshold_of(step: StepRule, case: Case) -> float | None:
    """The confidence a local answer must have: the rules', else DEFAULT_THRESHOLD where it is calibrated.

    None where neither holds: a confidence that nobody calibrated and no rule trusts decides nothing.
    """
    if step.local_threshold is not None:
        return step.local_threshold
    return DEFAULT_THRESHOLD if _is_calibrated(case) else None


def slow_ms_of(step: StepRule, attempts: int) -> int | None:
    """After how long the `silent` attempt starts, None where nothing waits for it."""
    if step.slow_ms is not None:
        return step.slow_ms
    return DEFAULT_SLOW_MS if attempts > 1 else None


def _choose(step: StepRule, case: Case, closed: Closed, max_cost: float | None) -> _Choice:
    """The decision and the sides in the order in which they are tried."""
    wanted = step.side
    candidates: Sequence[Side] = SIDES if wanted == "auto" else (wanted,)
    reasons, note = closed.reasons, None
    allowed = [side for side in candidates if side not in reasons]
    if not allowed:
        allowed = [side for side in candidates if side not in closed.firmly]
        if not allowed:
            rule = reasons[candidates[0]][0]
            return _Choice(Decision(step=step.name, rule=rule, forbidden=reasons), ())
        opened = sorted({name for side in allowed for name in reasons[side]})
        note = f"{', '.join(opened)} gave way: no side was left"
        reasons = {side: names for side, names in reasons.items() if side not in allowed}
    if wanted != "auto":
        decision = Decision(step=step.name, side=wanted, rule="fixed_side", forbidden=reasons, note=note)
        return _Choice(decision, (wanted,))
    if len(allowed) == 1:
        other: Side = "cloud" if allowed[0] == "local" else "local"
        decision = Decision(
            step=step.name, side=allowed[0], rule=reasons[other][0], forbidden=reasons, note=note
        )
        return _Choice(decision, (allowed[0],))
    return _between(step, case, reasons, note, max_cost)


def _between(
    step: StepRule, case: Case, reasons: dict[str, tuple[str, ...]], note: str | None, max_cost: float | None
) -> _Choice:
    """Both sides are allowed: the calibrated local model first, else by score."""
    threshold = threshold_of(step, case)
    if _is_calibrated(case):
        decision = Decision(
            step=step.name,
            side="local",
            rule="confidence_first",
            forbidden=reasons,
            threshold=threshold,
            note=note,
        )
        return _Choice(decision, SIDES)
    scored = score(case, SIDES, max_cost)
    decision = Decision(
        step=step.name,
        side=scored.side,
        rule="score",
        forbidden=reasons,
        scores=scored.scores,
        factors=scored.factors,
        threshold=threshold if scored.side == "local" else None,
        note=note,
    )
    return _Choice(decision, SIDES if scored.side == "local" else ("cloud", "local"))


def _is_calibrated(case: Case) -> bool:
    return case.local is not None and case.local.figures.calibrated


def _bound(case: Case, side: Side) -> float:
    target = case.target(side)
    if target is None:
        return 0.0
    figures = target.figures
    return figures.cost_per_call if figures.max_cost is None else figures.max_cost
