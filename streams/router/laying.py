"""One step of a request in its place: its inputs, its cases, its attempts. Pure."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from schemas.messages import Attempt, Decision, Examination, Request, RequestInfo, Step, Verdict
from schemas.rules import StepRule
from streams.references import resolve, resolve_known
from streams.registry.figures import View
from streams.router.constraints import Asked, Case, Purse, misfit, schema_of
from streams.router.decompose import TaskFound
from streams.router.keeping import step_key_of
from streams.router.opened import Opened, claimed_names
from streams.router.placement import place, slow_ms_of
from streams.router.predictor import Predictor
from streams.router.prices import Prices
from streams.router.veil import Examines, Veil

log = logging.getLogger(__name__)

_NOTHING: frozenset[str] = frozenset()


class Terms(NamedTuple):
    """What one version of the rules decides by; `predictors` are by task."""

    version: str
    constraints: Sequence[Asked]
    prices: Prices
    examiner: Examines
    examination: Examination
    predictors: Mapping[str, Predictor]


class Ask(msgspec.Struct, frozen=True):
    """What is to be planned: the request, its info, its task, the terms, and the time, in ms.

    `mask` is that of a request whose verdict is `masked`. `key` is the cache key of the whole answer;
    `keeps_steps` says that there is a cache for steps. `left_budget` is what is left of the budget, for the
    score. `lean`: no step gets a later attempt that costs. `opened` is what its claims stand for.
    """

    request: Request
    info: RequestInfo
    task: TaskFound
    terms: Terms
    now: int
    purse: Purse = "open"
    mask: dict[str, str] = {}
    key: str | None = None
    keeps_steps: bool = False
    left_budget: float | None = None
    lean: bool = False
    opened: Opened | None = None


class Laid(NamedTuple):
    """A step in its place. `sealed` are the inputs as the cloud gets them, `verdict` is the one on them."""

    step: Step
    decision: Decision
    inputs: dict[str, Any]
    max_batch: int | None
    sealed: dict[str, Any]
    verdict: Verdict
    bound: float
    misfit: str | None


def lay(step: StepRule, ask: Ask, view: View, veil: Veil | None, left: float | None) -> Laid:
    """Place `step`; `left` is what is left of the request's `max_cost`.

    Raises:
        Unresolved: the request cannot feed it.
    """
    task, request, terms = ask.task.rule, ask.request, ask.terms
    feed = resolve_known if step.after else resolve
    inputs = feed(step.inputs, request.inputs, request.params, request.query)
    sealed, verdict = (inputs, ask.info.privacy) if veil is None else veil.over(inputs)
    cases = [_case(step, capability, ask, view, inputs, verdict, left) for capability in step_options(step)]
    expected = _expected(step, ask, inputs) if terms.predictors else None
    placed = place(step, cases, terms.prices, terms.constraints, expected, ask.lean)
    attempts, decision = placed.attempts, placed.decision
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
        cache=_step_key(step, ask, view, inputs) if ask.keeps_steps and attempts else None,
    )
    to_cloud = bool(attempts) and attempts[0].side == "cloud"
    return Laid(
        laid,
        decision,
        inputs,
        laid.max_batch if to_cloud else step.max_batch,
        sealed,
        verdict,
        decision.reserved,
        None if attempts else _misfit(cases),
    )


def _expected(step: StepRule, ask: Ask, inputs: dict[str, Any]) -> float | None:
    """What the predictor says, where there is one and the inputs are known."""
    predictor = ask.terms.predictors.get(ask.task.name)
    if predictor is None or step.after:
        return None
    try:
        return predictor.expected(inputs)
    except Exception as error:  # noqa: BLE001 - a prediction is worth no request; the text may quote the payload
        log.warning("the predictor of the task %s failed (%s)", ask.task.name, type(error).__name__)
        return None


def step_options(step: StepRule) -> tuple[str, ...]:
    """The capabilities that can do `step`, the preferred one first."""
    if not step.alternatives:
        return (step.capability,)
    return tuple(dict.fromkeys((step.capability, *step.alternatives)))


def _case(
    step: StepRule,
    capability: str,
    ask: Ask,
    view: View,
    inputs: dict[str, Any],
    verdict: Verdict,
    left: float | None,
) -> Case:
    task, prices = ask.task.rule, ask.terms.prices
    local, cloud = view.at("local", capability), view.at("cloud", capability)
    claimed = _NOTHING if ask.opened is None else claimed_names(inputs)
    holds = bool(claimed) or (ask.opened is not None and bool(claimed_names(ask.request.params)))
    return Case(
        task=task,
        verdict=verdict,
        left_ms=ask.info.deadline - ask.now,
        inputs={name: value for name, value in inputs.items() if name not in claimed} if claimed else inputs,
        max_tokens=step.max_local_tokens,
        local=local,
        cloud=cloud,
        capability=capability,
        params=ask.request.params,
        later=(frozenset(step.inputs).difference(inputs) if step.after else _NOTHING) | claimed,
        unopened=ask.opened.closed if ask.opened is not None and holds else None,
        latency_ms=step.latency_ms or task.latency_ms,
        local_bound=prices.option("local", capability, local).bound,
        cloud_bound=prices.option("cloud", capability, cloud).bound,
        left_cost=left,
        left_budget=ask.left_budget,
        purse=ask.purse,
        foreign=capability in ask.task.foreign,
    )


def _step_key(step: StepRule, ask: Ask, view: View, inputs: dict[str, Any]) -> str | None:
    if ask.key is not None or step.after or ask.info.privacy.level != "normal":
        return None
    return step_key_of(step, step_options(step), ask.request, inputs, view, ask.terms.version)


def _max_batch(step: StepRule, cloud_batch_size: int | None, attempts: Sequence[Attempt]) -> int | None:
    """The step's own bound, else the task's for the cloud where an attempt may go there."""
    if step.max_batch is not None or cloud_batch_size is None:
        return step.max_batch
    return cloud_batch_size if any(attempt.side == "cloud" for attempt in attempts) else None


def _misfit(cases: Sequence[Case]) -> str | None:
    for case in cases:
        for target in (case.local, case.cloud):
            schema = schema_of(target)
            if schema and (name := misfit(case, schema)) is not None:
                return name
    return None
