"""What happens to one request, from the records of `joins` alone: a join that is only looked at. Pure."""

from __future__ import annotations

from typing import Any

from edgeway.exchange.ports import Event
from schemas import ids
from schemas.errors import Malformed
from schemas.messages import Checkpoint, Decision, JoinEvent, Partial, Plan, Step
from streams.aggregator.join import Dispatch, Join

MOST_ORPHANS = 64


class Shadow:
    """Events of one request. Its silences and weak answers lead to the escalations that the aggregator's own
    join draws from the same records at the same times; a dispatch that fails there before it is written (an
    examination, a budget that is spent) is not seen here. Times are ms on the broker's clock."""

    def __init__(self) -> None:
        self._join: Join | None = None
        self._orphans: list[tuple[Partial, int]] = []
        self._due: float = float("inf")

    @property
    def is_planned(self) -> bool:
        return self._join is not None

    @property
    def is_over(self) -> bool:
        """Whether the answer is due by what is known."""
        return self._join is not None and self._join.is_over

    @property
    def deadline(self) -> int | None:
        """The request's; None until it is planned."""
        return None if self._join is None else self._join.plan.request.deadline

    def take(self, message: JoinEvent, at: int) -> list[Event]:
        """What a record appended at `at` tells."""
        if isinstance(message, Partial):
            events = self._partial(message, at)
        elif isinstance(message, Plan):
            events = self._plan(message, at)
        else:
            events = self._checkpoint(message, at)
        return events + self._advance(at)

    def tick(self, now: int) -> list[Event]:
        """What time alone has brought about."""
        return self._advance(now) if now >= self._due else []

    def _advance(self, now: int) -> list[Event]:
        join = self._join
        if join is None:
            return []
        dispatches = join.advance(now)
        self._due = float("inf") if join.is_over else join.due()
        return [_escalated(join, dispatch, now) for dispatch in dispatches if _is_escalation(dispatch)]

    def _plan(self, plan: Plan, at: int) -> list[Event]:
        join = self._join
        if join is None:
            self._join = Join(plan, at)
        elif join.can_be_replaced_by(plan) and join.plan.request.digest == plan.request.digest:
            join.replace(plan, at)
        else:
            return []
        events = [_planned(plan, at)]
        orphans, self._orphans = self._orphans, []
        for partial, arrived in orphans:
            events += self._partial(partial, arrived)
        return events

    def _partial(self, partial: Partial, at: int) -> list[Event]:
        try:
            place = ids.parse_subtask_id(partial.subtask)
        except Malformed:
            return []
        if self._join is None:
            if len(self._orphans) < MOST_ORPHANS:
                self._orphans.append((partial, at))
            return []
        return [_answered(partial, place, at)] if self._join.take(partial, place, at) else []

    def _checkpoint(self, checkpoint: Checkpoint, at: int) -> list[Event]:
        events = self._plan(checkpoint.plan, at) if self._join is None else []
        for partial in checkpoint.partials:
            events += self._partial(partial, at)
        assert self._join is not None
        self._join.merge(checkpoint, at)
        return events


def accepted(key: str, at: int) -> Event:
    """The event of a request with that scoped id."""
    tenant, request_id = ids.unscoped(key)
    return Event("accepted", at, {"id": request_id, "tenant": tenant})


def _planned(plan: Plan, at: int) -> Event:
    decisions = {decision.step: decision for decision in plan.decisions}
    steps = [_step(step, decisions.get(step.name)) for step in plan.steps]
    request = plan.request
    data = {"task": request.task, "rules": plan.rules, "deadline": request.deadline, "steps": steps}
    return Event("planned", at, data)


def _step(step: Step, decision: Decision | None) -> dict[str, Any]:
    side = decision.side if decision is not None else None
    return {
        "step": step.name,
        "side": side or (step.attempts[0].side if step.attempts else None),
        "capability": step.capability,
        "rule": decision.rule if decision is not None else None,
        "after": list(step.after),
        "attempts": [
            {"side": attempt.side, "capability": attempt.capability, "triggers": list(attempt.triggers)}
            for attempt in step.attempts
        ],
    }


def _answered(partial: Partial, place: ids.SubtaskId, at: int) -> Event:
    data = {
        "step": place.step,
        "side": place.side,
        "attempt": place.attempt,
        "confidence": partial.confidence,
        "error": None if partial.error is None else partial.error.code,
        "cached": partial.cached,
    }
    return Event("partial", at, data)


def _is_escalation(dispatch: Dispatch) -> bool:
    return dispatch.attempt > 0 and dispatch.trigger != "first"


def _escalated(join: Join, dispatch: Dispatch, at: int) -> Event:
    progress = join.steps[dispatch.step]
    # The attempt whose answer, error or silence this follows: the last one begun before.
    earlier = [index for index in progress.started if index != dispatch.attempt]
    attempts = progress.step.attempts
    began = attempts[earlier[-1]].side if earlier else None
    data = {
        "step": dispatch.step,
        "from": began,
        "to": attempts[dispatch.attempt].side,
        "trigger": dispatch.trigger,
        "attempt": dispatch.attempt,
    }
    return Event("escalated", at, data)
