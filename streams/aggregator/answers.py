"""The one answer of a request, from its join."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from schemas.claims import as_value
from schemas.messages import (
    Claim,
    Failure,
    Merge,
    Model,
    Partial,
    Plan,
    RequestInfo,
    Result,
    Side,
    Status,
    Timings,
)
from streams.aggregator.degraded import INACCURATE, ordered, standing_in, why
from streams.aggregator.join import Join
from streams.aggregator.progress import Progress
from streams.merge import Merged, Part, Strategy, combine

__all__ = ["INACCURATE", "answer", "refusal"]
_COLLECT = Merge(strategy="collect")


def answer(join: Join, strategies: Mapping[str, Strategy], now: int) -> Result:
    """The Result of a join that is over, whatever became of it. Never raises."""
    plan = join.plan
    if join.doom is not None:
        return refusal(plan.request, join.doom, plan=plan, cost=sum(join.costs.values()))
    if plan.answer is not None:
        return _given(plan.answer, plan.request)
    answered: list[Progress] = []
    missing: list[Progress] = []
    for step in join.steps.values():
        (missing if step.answer is None else answered).append(step)
    if plan.stand_in is not None and not answered:
        return _stand_in(join, plan.stand_in, missing, now)
    merged = _merge(plan, answered, strategies)
    error = _failure(plan.request, missing) if missing or not answered else None
    if isinstance(merged, Failure):
        failure = merged if answered or error is None else error
        return _result(join, "error", answered, missing, Merged(None), failure, now)
    status: Status = "ok" if error is None else "partial"
    return _result(join, status, answered, missing, merged, error, now)


def _given(answer: Result, request: RequestInfo) -> Result:
    """The answer that the router gave, under the id and the verdict of its request."""
    privacy = answer.privacy or request.privacy
    if answer.id == request.id and answer.privacy is privacy:
        return answer
    return msgspec.structs.replace(answer, id=request.id, privacy=privacy)


def _stand_in(join: Join, older: Result, missing: list[Progress], now: int) -> Result:
    """The older answer instead of an error."""
    plan = join.plan
    words = set[str]().union(*(why(step, plan.decisions) for step in missing))
    return standing_in(plan, older, words, now, sum(join.costs.values()))


def refusal(request: RequestInfo, failure: Failure, *, plan: Plan | None = None, cost: float = 0.0) -> Result:
    """An error Result for a request that is not carried out any further."""
    return Result(
        id=request.id,
        status="error",
        error=failure,
        cost=cost,
        decisions=plan.decisions if plan else (),
        missing=tuple(step.name for step in plan.steps) if plan else (),
        rules=plan.rules if plan else None,
        tenant=request.tenant,
        task=request.task,
        digest=request.digest,
        privacy=request.privacy,
    )


def _merge(plan: Plan, answered: list[Progress], strategies: Mapping[str, Strategy]) -> Merged | Failure:
    if not answered:
        return Failure(code="unanswered", message="no step answered")
    if plan.merge is None and len(plan.steps) == 1:
        partial = answered[0].answer
        assert partial is not None
        return Merged(partial.output, partial.confidence)
    return combine(strategies, plan.merge or _COLLECT, [_part(step) for step in answered])


def _part(step: Progress) -> Part:
    partial = step.answer
    assert partial is not None
    return Part(
        step.name, _output(partial), partial.confidence, step.step.weight, step.step.priority, step.side
    )


def _output(partial: Partial) -> object:
    """The output, or where it travels by claim check the claim, so that the caller can fetch it."""
    claim = partial.claim
    if claim is None or partial.output is not None:
        return partial.output
    return as_value(claim)


def _failure(request: RequestInfo, missing: list[Progress]) -> Failure:
    failed = next((step for step in missing if step.failure is not None), None)
    if failed is not None and failed.failure is not None:
        return Failure(code=failed.failure.code, message=f"step {failed.name}: {failed.failure.message}")
    if not missing:
        return Failure(code="internal", message="the plan has neither steps nor an answer")
    names = ", ".join(step.name for step in missing)
    allowed = request.deadline - request.accepted
    return Failure(
        code="deadline_exceeded",
        message=f"no answer within {allowed} ms from: {names}; raise `deadline_ms` or start its workers",
    )


def _result(
    join: Join,
    status: Status,
    answered: list[Progress],
    missing: list[Progress],
    merged: Merged,
    error: Failure | None,
    now: int,
) -> Result:
    plan, total = join.plan, float(now - join.plan.request.accepted)
    timings: dict[str, Timings] = {}
    models: dict[str, Model] = {}
    sides: dict[str, Side] = {}
    degraded: set[str] = set()
    approximate = False
    warnings: list[str] = []
    for step in answered:
        partial = step.answer
        assert partial is not None
        assert step.side is not None
        timings[step.name] = _timings(partial.timings, total)
        sides[step.name] = step.side
        if step.approximate:
            if not approximate:
                warnings.insert(0, INACCURATE)
            approximate = True
            degraded |= why(step, plan.decisions)
        if step.low:
            warnings.append(_low(step, len(plan.steps) > 1))
        if partial.model is not None:
            models[step.name] = partial.model
        if partial.claim is not None and plan.mask and step.side == "cloud":
            warnings.append(f"step {step.name}: placeholders stand in its large output; see claims.md")
    if status == "partial":
        degraded.add("parts_missing")
    return Result(
        id=plan.request.id,
        status=status,
        output=merged.output,
        confidence=merged.confidence,
        approximate=approximate,
        warnings=(*warnings, *merged.warnings),
        missing=tuple(step.name for step in missing),
        decisions=plan.decisions,
        cost=sum(join.costs.values()),
        timings=timings,
        models=models,
        sides=sides,
        tenant=plan.request.tenant,
        task=plan.request.task,
        rules=plan.rules,
        digest=plan.request.digest,
        error=error,
        claim=_claim(plan, answered),
        privacy=plan.request.privacy,
        cached=bool(answered) and all(step.answer is not None and step.answer.cached for step in answered),
        degraded=ordered(degraded) if degraded else (),
    )


def _claim(plan: Plan, answered: list[Progress]) -> Claim | None:
    """Where the output of a single step lies, unless it is in the answer."""
    if len(plan.steps) > 1 or plan.merge is not None or not answered:
        return None
    return None if answered[0].answer is None else answered[0].answer.claim


def _low(step: Progress, named: bool) -> str:
    threshold = step.step.threshold
    text = f"low confidence: below the threshold {threshold} and no better place was allowed"
    return f"step {step.name}: {text}" if named else text


def _timings(given: Timings, total: float) -> Timings:
    if given.total_ms:
        return given
    return Timings(queue_ms=given.queue_ms, service_ms=given.service_ms, total_ms=total)
