"""What a plan would have come to for one recorded request. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from edgeway.backtest_evidence import (
    Estimate,
    Evidence,
    Sides,
    bucket_of,
    carried_out,
    confidence_at_home,
    knows_costs,
    sides_of,
)
from edgeway.explain_record import bound_of
from edgeway.recorded import Recorded, right_of
from schemas.messages import Plan, Side, Step
from schemas.rules_structs import Price

_GOLDEN = 0.6180339887498949
"""Multiples of it modulo 1 spread evenly, so that the requests draw a target's whole range of times."""


class StepOutcome(NamedTuple):
    """`first` is where the step is sent, `answered` whose answer is taken; `sure`: nothing was guessed."""

    first: Side
    answered: Side
    sure: bool = True


class Outcome(NamedTuple):
    """One request under one rule set. `refused` is an error's code; `cost` is expected, `bound` the most,
    None where an attempt is known to cost and has no price.

    `took_ms` and `right` are None where nothing tells; `leaves` says whether the cloud may have it.
    """

    task: str | None
    refused: str | None
    steps: Mapping[str, StepOutcome]
    leaves: bool | None
    bound: float | None = 0.0
    cost: float = 0.0
    took_ms: float | None = None
    right: Estimate | None = None
    over_budget: bool = False


def of_plan(plan: Plan, recorded: Recorded, evidence: Evidence, prices: Mapping[str, Price]) -> Outcome:
    """What `plan` would have come to."""
    task, leaves = plan.request.task, plan.request.privacy.cloud_allowed
    if plan.answer is not None:
        error = plan.answer.error
        return Outcome(task, error.code if error is not None else None, {}, leaves)
    steps = {step.name: _step(step, recorded) for step in plan.steps}
    used = _Used(recorded, evidence, prices)
    return Outcome(
        task,
        None,
        steps,
        leaves,
        bound=bound_of(plan) if all(map(used.has_price, plan.steps)) else None,
        cost=sum(used.cost(step, steps[step.name]) for step in plan.steps),
        took_ms=_longest(
            plan.steps, {step.name: used.took_ms(step, steps[step.name]) for step in plan.steps}
        ),
        right=_right(task, steps, recorded, evidence),
    )


def of_record(recorded: Recorded, evidence: Evidence) -> Outcome | None:
    """What really became of the request; None where no result is recorded."""
    result = recorded.result
    if result is None:
        return None
    first = {decision.step: decision.side for decision in result.decisions}
    steps = {step: StepOutcome(first.get(step) or side, side) for step, side in result.sides.items()}
    times = [seen.took_ms for seen in carried_out(recorded) if not seen.failed]
    by_step = {
        step: sum(seen.took_ms for seen in carried_out(recorded) if seen.step == step)
        for step in result.sides
    }
    right = right_of(recorded.feedback)
    return Outcome(
        result.task,
        result.error.code if result.error is not None else None,
        steps if result.error is None else {},
        None if result.privacy is None else result.privacy.cloud_allowed,
        bound=max(result.cost, sum(decision.reserved for decision in result.decisions)),
        cost=result.cost,
        took_ms=max(by_step.values()) if times and by_step and not result.cached else None,
        right=None if right is None or result.error is not None else Estimate(right, 1, own=True),
    )


def _step(step: Step, recorded: Recorded) -> StepOutcome:
    first = step.attempts[0].side
    if (other := _helped(step, recorded)) is not None:
        return StepOutcome(first, other)
    weak = next((attempt.side for attempt in step.attempts[1:] if "weak" in attempt.triggers), None)
    if weak is None or step.threshold is None or first != "local":
        return StepOutcome(first, first)
    confidence = confidence_at_home(recorded, step.name)
    if confidence is not None:
        return StepOutcome(first, weak if confidence < step.threshold else first)
    return _without_confidence(step, step.threshold, weak, recorded)


def _helped(step: Step, recorded: Recorded) -> Side | None:
    """The side that answered when that of the first attempt failed, where the plan would ask it as well."""
    first, result = step.attempts[0].side, recorded.result
    failed = any(seen.failed and (seen.step, seen.side) == (step.name, first) for seen in recorded.attempts)
    if not failed or result is None:
        return None
    answered = result.sides.get(step.name)
    others = {attempt.side for attempt in step.attempts[1:]} - {first}
    return answered if answered in others else None


def _without_confidence(step: Step, threshold: float, weak: Side, recorded: Recorded) -> StepOutcome:
    """By what the recorded decision and answer give away: the edge's answer was, or was not, enough then."""
    result = recorded.result
    then = None
    if result is not None and not result.cached:
        then = next((decision for decision in result.decisions if decision.step == step.name), None)
    if result is None or then is None or then.side != "local" or then.threshold is None:
        return StepOutcome("local", "local", sure=False)
    answered = result.sides.get(step.name)
    if answered == "cloud":
        return StepOutcome("local", weak, sure=threshold >= then.threshold)
    enough = answered == "local" and not result.approximate
    return StepOutcome("local", "local", sure=enough and threshold <= then.threshold)


class _Used:
    """Costs and times of the targets of one record: its own where the same target ran, else the evidence."""

    def __init__(self, recorded: Recorded, evidence: Evidence, prices: Mapping[str, Price]) -> None:
        self._evidence = evidence
        self._prices = prices
        self._number = recorded.number
        own = carried_out(recorded) if recorded.result is not None and not recorded.result.cached else ()
        self._own = {(seen.step, seen.side): seen for seen in own if not seen.failed}
        self._own_costs = knows_costs(recorded)

    def cost(self, step: Step, outcome: StepOutcome) -> float:
        """What the attempts of `step` that are expected to run cost."""
        return sum(self._price(step, index) for index in _running(step, outcome))

    def has_price(self, step: Step) -> bool:
        """Whether no attempt of `step` costs more than its price."""
        return all(
            attempt.max_cost > 0 or not self._evidence.cost((attempt.side, attempt.capability))
            for attempt in step.attempts
        )

    def took_ms(self, step: Step, outcome: StepOutcome) -> float | None:
        """How long they take, one after the other."""
        times = [self._time(step, index) for index in _running(step, outcome)]
        known = [time for time in times if time is not None]
        return sum(known) if len(known) == len(times) else None

    def _price(self, step: Step, index: int) -> float:
        attempt = step.attempts[index]
        own = self._own.get((step.name, attempt.side))
        if own is not None and self._own_costs:
            return own.cost
        mean = self._evidence.cost((attempt.side, attempt.capability))
        if mean is not None:
            return mean
        price = self._prices.get(f"{attempt.side}/{attempt.capability}")
        per_call = None if price is None or price.per_1k_tokens else price.per_call
        return attempt.max_cost if per_call is None else per_call

    def _time(self, step: Step, index: int) -> float | None:
        attempt = step.attempts[index]
        own = self._own.get((step.name, attempt.side))
        if own is not None:
            return own.took_ms
        draw = ((self._number + index) * _GOLDEN + 0.5) % 1.0
        return self._evidence.took_ms((attempt.side, attempt.capability), draw)


def _running(step: Step, outcome: StepOutcome) -> list[int]:
    """The attempts that are expected to run: the first, and the one whose answer is taken instead."""
    if outcome.answered == outcome.first:
        return [0]
    return [0, next(n for n, attempt in enumerate(step.attempts) if n and attempt.side == outcome.answered)]


def _longest(steps: Sequence[Step], times: Mapping[str, float | None]) -> float | None:
    """The longest way through the steps, each begun when the last it waits for has ended."""
    ends: dict[str, float] = {}
    waiting = list(steps)
    while waiting:
        ready = [step for step in waiting if all(name in ends for name in step.after)]
        if not ready:
            return None
        for step in ready:
            time = times[step.name]
            if time is None:
                return None
            ends[step.name] = max((ends[name] for name in step.after), default=0.0) + time
        waiting = [step for step in waiting if step.name not in ends]
    return max(ends.values(), default=None)


def _right(
    task: str | None, steps: Mapping[str, StepOutcome], recorded: Recorded, evidence: Evidence
) -> Estimate | None:
    """The record's own feedback where the same sides answered, else that of others that they answered."""
    sides: Sides = tuple(sorted((name, step.answered) for name, step in steps.items()))
    result = recorded.result
    own = right_of(recorded.feedback)
    if own is not None and result is not None and result.error is None and sides_of(result) == sides:
        return Estimate(own, 1, own=True)
    return evidence.right(task, sides, bucket_of(confidence_at_home(recorded)))
