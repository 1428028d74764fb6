"""A request and its task into a plan and the first subtasks. Pure: the same arguments give the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from schemas import ids
from schemas.messages import (
    Attempt,
    Decision,
    Failure,
    Merge,
    Plan,
    Request,
    RequestInfo,
    Result,
    Side,
    Step,
    Subtask,
)
from schemas.rules import StepRule
from streams.references import Unresolved, resolve, resolve_known
from streams.registry.figures import View
from streams.router.constraints import CONSTRAINTS, Case, Constraint
from streams.router.decompose import TaskFound
from streams.router.placement import place, slow_ms_of


class Ask(msgspec.Struct, frozen=True):
    """What is to be planned: the request, its info, its task, the rules' version, and the time, in ms."""

    request: Request
    info: RequestInfo
    task: TaskFound
    rules: str
    now: int


class Sent(NamedTuple):
    """A subtask and the side it goes to."""

    side: Side
    subtask: Subtask


class Planned(NamedTuple):
    """A plan and the subtasks to send with it; none where the plan is an answer already."""

    plan: Plan
    first: tuple[Sent, ...]


class _Laid(NamedTuple):
    step: Step
    decision: Decision
    inputs: dict[str, Any]
    max_batch: int | None


def refusal(info: RequestInfo, failure: Failure, rules: str, decisions: tuple[Decision, ...] = ()) -> Plan:
    """A plan with nothing to run: the error is the answer."""
    answer = Result(
        id=info.id,
        status="error",
        error=failure,
        decisions=decisions,
        tenant=info.tenant,
        task=info.task,
        rules=rules,
        digest=info.digest,
    )
    return Plan(request=info, rules=rules, decisions=decisions, answer=answer)


def plan(ask: Ask, view: View, constraints: Sequence[Constraint] = CONSTRAINTS) -> Planned:
    """Plan `ask` by what is alive in `view`.

    A step that no side may take (`no_placement`) and inputs that the request cannot feed
    (`invalid_request`) refuse the whole request before anything is sent.
    """
    laid: list[_Laid] = []
    for step in ask.task.rule.steps:
        try:
            placed = _lay(step, ask, view, constraints)
        except Unresolved as error:
            failure = Failure(code="invalid_request", message=f"step {step.name}: {error}")
            return Planned(refusal(ask.info, failure, ask.rules), ())
        laid.append(placed)
        if not placed.step.attempts:
            decisions = tuple(each.decision for each in laid)
            return Planned(refusal(ask.info, _no_placement(placed), ask.rules, decisions), ())
    return _assemble(ask, laid)


def _lay(step: StepRule, ask: Ask, view: View, constraints: Sequence[Constraint]) -> _Laid:
    task, request = ask.task.rule, ask.request
    feed = resolve_known if step.after else resolve
    inputs = feed(step.inputs, request.inputs, request.params, request.query)
    case = Case(
        task=task,
        verdict=ask.info.privacy,
        left_ms=ask.info.deadline - ask.now,
        inputs=inputs,
        max_tokens=step.max_local_tokens,
        local=view.at("local", step.capability),
        cloud=view.at("cloud", step.capability),
    )
    placed = place(step, case, constraints, request.max_cost)
    attempts = placed.attempts
    laid = Step(
        name=step.name,
        capability=step.capability,
        attempts=attempts,
        after=step.after,
        inputs=step.inputs,
        threshold=placed.threshold,
        slow_ms=slow_ms_of(step, len(attempts)),
        on_slow=step.on_slow or "answer",
        weight=step.weight,
        priority=step.priority,
        max_batch=_max_batch(step, task.cloud_batch_size, attempts),
    )
    to_cloud = bool(attempts) and attempts[0].side == "cloud"
    return _Laid(laid, placed.decision, inputs, laid.max_batch if to_cloud else step.max_batch)


def _max_batch(step: StepRule, cloud_batch_size: int | None, attempts: Sequence[Attempt]) -> int | None:
    """The step's own bound, else the task's for the cloud where an attempt may go there."""
    if step.max_batch is not None or not any(attempt.side == "cloud" for attempt in attempts):
        return step.max_batch
    return cloud_batch_size


def _assemble(ask: Ask, laid: Sequence[_Laid]) -> Planned:
    request, info, merge = ask.request, ask.info, ask.task.rule.merge
    later = any(each.step.after or len(each.step.attempts) > 1 for each in laid)
    made = Plan(
        request=info,
        rules=ask.rules,
        steps=tuple([each.step for each in laid]),
        merge=None if merge is None else Merge(strategy=merge.strategy, params=merge.params),
        inputs=request.inputs if later else {},
        params=request.params if later else {},
        query=request.query if later else None,
        decisions=tuple([each.decision for each in laid]),
    )
    scope = ids.scoped(info.tenant, info.id)
    first: list[Sent] = []
    for each in laid:
        step = each.step
        if step.after:
            continue
        attempt = step.attempts[0]
        subtask = Subtask(
            id=ids.subtask_id(scope, step.name, attempt.side, 0),
            capability=attempt.capability,
            deadline=info.deadline,
            inputs=each.inputs,
            params=request.params,
            tenant=info.tenant,
            max_batch=each.max_batch,
            max_cost=attempt.max_cost,
            traceparent=info.traceparent,
            tracestate=info.tracestate,
        )
        first.append(Sent(attempt.side, subtask))
    return Planned(made, tuple(first))


def _no_placement(laid: _Laid) -> Failure:
    closed = "; ".join(
        f"{side}: {', '.join(names)}" for side, names in sorted(laid.decision.forbidden.items())
    )
    return Failure(
        code="no_placement",
        message=f"step {laid.step.name} ({laid.step.capability}) has no side to run on: {closed}",
    )
