"""A request and its task into a plan and the first subtasks. Pure: the same arguments give the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from schemas import ids
from schemas.errors import ErrorCode
from schemas.messages import (
    Attempt,
    Decision,
    Failure,
    Merge,
    Plan,
    RequestInfo,
    Result,
    Side,
    Step,
    Subtask,
    Verdict,
)
from streams.budget.ports import GRACE_MS, Reservation
from streams.references import Unresolved
from streams.registry.figures import View
from streams.router.laying import Ask, Laid, lay
from streams.router.veil import Veil
from streams.tracing.ids import of_subtask, within


class Sent(NamedTuple):
    """A subtask, the side it goes to, and the verdict on what it carries."""

    side: Side
    subtask: Subtask
    verdict: Verdict


class Planned(NamedTuple):
    """A plan, the subtasks to send with it (none where the plan is an answer already), and what must be set
    aside of the budget before."""

    plan: Plan
    first: tuple[Sent, ...]
    reservations: tuple[Reservation, ...] = ()


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
        privacy=info.privacy,
    )
    return Plan(request=info, rules=rules, decisions=decisions, answer=answer)


def plan(ask: Ask, view: View) -> Planned:
    """Plan `ask` by what is alive in `view`.

    A step that no side may take (`no_placement`; `bad_input` where no card's schema fits the inputs) and
    inputs that the request cannot feed (`invalid_request`) refuse the whole request before anything is sent.
    Where the later attempts of earlier steps take up the request's `max_cost`, they are left out.
    """
    made = _plan(ask, view)
    if ask.request.max_cost is not None and made.plan.answer is not None and not ask.lean:
        return _plan(msgspec.structs.replace(ask, lean=True), view)
    return made


def _plan(ask: Ask, view: View) -> Planned:
    laid: list[Laid] = []
    found = None if ask.opened is None else ask.opened.found
    veil = Veil(ask.terms.examiner, ask.mask, ask.request.params, found) if ask.mask else None
    left = ask.request.max_cost
    for step in ask.task.steps:
        try:
            placed = lay(step, ask, view, veil, left)
        except Unresolved as error:
            failure = Failure(code="invalid_request", message=f"step {step.name}: {error}")
            return Planned(refusal(ask.info, failure, ask.terms.version), ())
        laid.append(placed)
        if not placed.step.attempts:
            decisions = tuple([each.decision for each in laid])
            return Planned(refusal(ask.info, _no_placement(placed), ask.terms.version, decisions), ())
        if left is not None:
            left = max(0.0, left - placed.bound)
    return _assemble(ask, laid, veil)


def _assemble(ask: Ask, laid: Sequence[Laid], veil: Veil | None) -> Planned:
    request, info, merge = ask.request, ask.info, ask.task.rule.merge
    later = masks = False
    steps: list[Step] = []
    for each in laid:
        step = each.step
        steps.append(step)
        later = later or bool(step.after) or len(step.attempts) > 1
        masks = masks or (veil is not None and _goes_to_cloud(step.attempts))
    again = _is_examined_later(laid, masks or ask.opened is not None)
    made = Plan(
        request=info,
        rules=ask.terms.version,
        steps=tuple(steps),
        merge=None if merge is None else Merge(strategy=merge.strategy, params=merge.params),
        inputs=request.inputs if later else {},
        params=request.params if later else {},
        query=request.query if later else None,
        decisions=tuple([each.decision for each in laid]),
        cache=ask.key if info.privacy.level == "normal" else None,
        mask=ask.mask if masks else {},
        examination=ask.terms.examination if again else None,
    )
    scope = ids.scoped(info.tenant, info.id)
    first = tuple([_sent(each, ask, scope, veil) for each in laid if not each.step.after])
    return Planned(made, first, _reservations(ask, laid, scope))


def _is_examined_later(laid: Sequence[Laid], again: bool) -> bool:
    """Whether the aggregator may have to examine what it sends to the cloud; `again`: also what the router
    examined."""
    for each in laid:
        attempts = each.step.attempts
        if each.step.after:
            if _goes_to_cloud(attempts):
                return True
        elif again and _goes_to_cloud(attempts[1:]):
            return True
    return False


def _goes_to_cloud(attempts: Sequence[Attempt]) -> bool:
    return any(attempt.side == "cloud" for attempt in attempts)


def _sent(laid: Laid, ask: Ask, scope: str, veil: Veil | None) -> Sent:
    request, info, step = ask.request, ask.info, laid.step
    attempt = step.attempts[0]
    veiled = veil is not None and attempt.side == "cloud"
    subtask = Subtask(
        id=ids.subtask_id(scope, step.name, attempt.side, 0),
        capability=attempt.capability,
        deadline=info.deadline,
        inputs=laid.sealed if veiled else laid.inputs,
        params=veil.params if veiled and veil is not None else request.params,
        tenant=info.tenant,
        max_batch=laid.max_batch,
        max_cost=attempt.max_cost,
        traceparent=within(info.traceparent, scope, of_subtask(step.name, attempt.side, 0)),
        # What a caller's tracer writes there has not been examined.
        tracestate=None if attempt.side == "cloud" else info.tracestate,
    )
    return Sent(attempt.side, subtask, laid.verdict if veiled else info.privacy)


def _reservations(ask: Ask, laid: Sequence[Laid], scope: str) -> tuple[Reservation, ...]:
    info = ask.info
    wanted: list[Reservation] = []
    for each in laid:
        if not each.bound:
            continue
        for index, attempt in enumerate(each.step.attempts):
            if attempt.max_cost:
                subtask = ids.subtask_id(scope, each.step.name, attempt.side, index)
                wanted.append(Reservation(subtask, info.tenant, attempt.max_cost, info.deadline + GRACE_MS))
    return tuple(wanted)


def _no_placement(laid: Laid) -> Failure:
    closed = "; ".join(
        [f"{side}: {', '.join(names)}" for side, names in sorted(laid.decision.forbidden.items())]
    )
    message = f"step {laid.step.name} ({laid.step.capability}) has no side to run on: {closed}"
    code: ErrorCode = "no_placement"
    if laid.misfit is not None and laid.decision.rule == "input_schema":
        code = "bad_input"
        message += f"; `{laid.misfit}` is missing or does not fit the card's input_schema"
    return Failure(code=code, message=message)
