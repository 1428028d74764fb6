"""The router as an agent: batches of requests in, plans and first subtasks out."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence

from schemas import ids
from schemas.errors import Malformed, SchemaError
from schemas.messages import Failure, RequestInfo, Verdict
from schemas.rules import Rules
from streams import metrics
from streams.delivery import Batch, Clock, Lane, Output, Record
from streams.privacy.verdict import Judge, declared, verdict_of
from streams.registry import Registry, View, slow_limits
from streams.router.admission import Admitted, admit, info_of, info_of_unreadable
from streams.router.constraints import CONSTRAINTS, Constraint
from streams.router.decompose import Lexicon
from streams.router.outputs import outputs_of, plan_record
from streams.router.plan import Ask, Planned, plan, refusal
from streams.router.repeats import Standing, standings
from streams.stores import SeenStore

log = logging.getLogger(__name__)

_BREATH = 64
"""After so many requests the loop gets a turn: heartbeats to Kafka must not wait for a large batch."""
_UNREADABLE = frozenset(("malformed", "unsupported_version", "too_large"))
_NO_STORE = Failure(
    code="object_missing",
    message="the request's inputs are in an object store and none is configured; send them in the record",
)
_OVERDUE = Failure(
    code="deadline_exceeded", message="the deadline had passed when the request was read; send it again"
)


class Router:
    """An Agent for `requests`.

    `registry` is fed by the host; `seen` remembers ids between routers (None: only the aggregator notices
    repeats); `judge` gives the privacy verdict; `constraints` are asked for every step.
    """

    def __init__(
        self,
        rules: Rules,
        registry: Registry,
        clock: Clock,
        *,
        seen: SeenStore | None = None,
        judge: Judge = declared,
        constraints: Sequence[Constraint] = CONSTRAINTS,
    ) -> None:
        self._registry = registry
        self._clock = clock
        self._seen = seen
        self._judge = judge
        self._constraints = tuple(constraints)
        self._shown: View | None = None
        self.adopt(rules)

    def adopt(self, rules: Rules) -> None:
        """Plan by these rules from the next request on."""
        self._rules = rules
        self._lexicon = Lexicon(rules)
        self._registry.limit(slow_limits(rules))

    async def handle(self, batch: Batch) -> None:
        """Plan every request of `batch`; what cannot be read is failed alone. One settle for all others."""
        admitted: list[Admitted] = []
        offsets: list[int] = []
        broken: list[tuple[Record, Failure]] = []
        for record in batch.records:
            try:
                admitted.append(admit(record))
                offsets.append(record.offset)
            except Malformed as error:
                broken.append((record, Failure(code=error.code, message=str(error))))
        outputs = await self._plan_all(admitted)
        # Nothing is settled before all is planned: after an exception the runner brings the batch again.
        for record, failure in broken:
            batch.lane.fail(record, failure)
            metrics.REQUESTS.labels(failure.code).inc()
        if offsets:
            batch.lane.settle(offsets, outputs)

    def refuse(self, record: Record, failure: Failure) -> Sequence[Output]:
        """An error answer on `joins` where the record names an id; nothing where it does not."""
        try:
            return (
                plan_record(refusal(self._info_of_failed(record, failure), failure, self._rules.version)),
            )
        except SchemaError as error:
            log.warning(
                "%s/%d offset %d gets no answer: %s", record.topic, record.partition, record.offset, error
            )
            return ()

    def assigned(self, lane: Lane) -> None:
        """Nothing is kept per lane."""

    def revoked(self, lane: Lane) -> None:
        """Nothing is kept per lane."""

    async def _plan_all(self, batch: Sequence[Admitted]) -> list[Output]:
        outputs: list[Output] = []
        outcomes: Counter[str] = Counter()
        routes: Counter[tuple[str, str]] = Counter()
        standing = await standings(self._seen, batch)
        now = self._clock.now()
        view = self._registry.view(now)
        self._show(view)
        for count, (admitted, how) in enumerate(zip(batch, standing, strict=True), start=1):
            if how == "repeat":
                outcomes["repeat"] += 1
                continue
            planned = self._plan(admitted, how, view, now)
            planned, records = self._written(planned)
            outputs += records
            answer = planned.plan.answer
            outcomes["planned" if answer is None or answer.error is None else answer.error.code] += 1
            for decision in planned.plan.decisions:
                routes[decision.side or "none", decision.rule] += 1
            if view.trials and planned.first:
                view = self._admit_trials(planned, view, now)
            if count % _BREATH == 0:
                await asyncio.sleep(0)
        _count(outcomes, routes)
        return outputs

    def _plan(self, admitted: Admitted, how: Standing, view: View, now: int) -> Planned:
        request = admitted.request
        verdict = verdict_of(request, self._judge)
        if how == "conflict":
            return self._conflict(admitted, verdict)
        found = self._lexicon.find(request)
        if isinstance(found, Failure):
            return self._refused(info_of(admitted, verdict, request.task, None), found)
        info = info_of(admitted, verdict, found.name, found.rule.deadline_ms)
        if info.deadline <= now:
            return self._refused(info, _OVERDUE)
        if request.claim is not None:
            return self._refused(info, _NO_STORE)
        ask = Ask(request=request, info=info, task=found, rules=self._rules.version, now=now)
        return plan(ask, view, self._constraints)

    def _conflict(self, admitted: Admitted, verdict: Verdict) -> Planned:
        as_id = ids.conflicting(admitted.id, admitted.digest)
        failure = Failure(
            code="id_conflict",
            message="this id was used before with other content, whose answer stands; choose a new id",
        )
        return self._refused(info_of(admitted, verdict, admitted.request.task, None, as_id), failure)

    def _refused(self, info: RequestInfo, failure: Failure) -> Planned:
        return Planned(refusal(info, failure, self._rules.version), ())

    def _written(self, planned: Planned) -> tuple[Planned, list[Output]]:
        """The records of a plan; where one does not fit or has no topic, that of the refusal that says so."""
        try:
            return planned, outputs_of(planned)
        except SchemaError as error:
            refused = self._refused(planned.plan.request, Failure(code=error.code, message=str(error)))
            return refused, outputs_of(refused)

    def _admit_trials(self, planned: Planned, view: View, now: int) -> View:
        """Count the calls to half-open targets, so that only a few pass."""
        for side, subtask in planned.first:
            target = view.at(side, subtask.capability)
            if target is not None and target.gate == "half_open":
                self._registry.admit(side, subtask.capability, now)
        return self._registry.view(now)

    def _show(self, view: View) -> None:
        """The breakers as metrics, when they may have changed."""
        if view is not self._shown:
            self._shown = view
            for (side, capability), target in view.targets.items():
                metrics.BREAKER.labels(capability, side).set(target.gate != "closed")

    def _info_of_failed(self, record: Record, failure: Failure) -> RequestInfo:
        if failure.code not in _UNREADABLE:
            admitted = admit(record)
            return info_of(admitted, verdict_of(admitted.request), admitted.request.task, None)
        return info_of_unreadable(record)


def _count(outcomes: Counter[str], routes: Counter[tuple[str, str]]) -> None:
    for outcome, count in outcomes.items():
        metrics.REQUESTS.labels(outcome).inc(count)
    for (side, rule), count in routes.items():
        metrics.ROUTES.labels(side, rule).inc(count)
