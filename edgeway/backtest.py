"""Two rule sets on the same recorded traffic: what moves, what it costs, how long it takes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from edgeway.backtest_budget import Ceilings
from edgeway.backtest_evidence import Evidence, bounds_of
from edgeway.backtest_outcome import Outcome, of_plan, of_record
from edgeway.backtest_report import Compared, JudgedRow, Records, Report, TargetRow
from edgeway.backtest_tally import Tally
from edgeway.explain_record import Setting, admitted_of, bound_of, decided
from edgeway.recorded import Recorded
from schemas import ids
from schemas.messages import Feedback
from schemas.rules import Rules
from streams.router.direct import direct_tasks
from streams.router.plan import Planned
from streams.router.planner import Planner

RECORDED = "recorded"
"""The name of what was really decided, as one of the two that are compared."""


NO_TASK = "(none)"
"""Stands for the requests whose task is in neither of the two."""


class Contender(NamedTuple):
    """A rule set to be tried: its file's name, its planner, and the view by which it decides."""

    name: str
    planner: Planner
    setting: Setting


class Traffic(NamedTuple):
    """The records, which are gone through twice: `scan` as they come, `in_time` in order of their times."""

    scan: Callable[[], Iterable[Recorded]]
    in_time: Callable[[], Iterable[Recorded]]
    bad: Callable[[], int]


def backtest(
    traffic: Traffic,
    old: Contender | None,
    new: Contender,
    feedback: Mapping[str, Feedback] | None = None,
) -> Report:
    """Compare `new` with `old`, or with what was really decided where that is None.

    `feedback` is by scoped id, and stands over what the records bring themselves.
    """
    said = feedback or {}
    evidence = Evidence(_capabilities(old, new), new.setting.view)
    read = 0
    for recorded in traffic.scan():
        evidence.learn(_with_feedback(recorded, said))
        read += 1
    trials = (_Trial(old, evidence) if old is not None else None, _Trial(new, evidence))
    return _compare(traffic, trials, evidence, said, read)


def capability_in(rules: Iterable[Rules]) -> Callable[[str | None, str], str]:
    """What a task's step asks for, by the first of `rules` that has it; else the step's own name."""
    known: dict[tuple[str | None, str], str] = {}
    for each in rules:
        for name, task in {**direct_tasks(each), **each.tasks}.items():
            for step in task.steps:
                known.setdefault((name, step.name), step.capability)
    return lambda task, step: known.get((task, step), step)


class _Trial:
    """One rule set on each request, in order of time, under its own ceilings."""

    def __init__(self, contender: Contender, evidence: Evidence) -> None:
        self._contender = contender
        self._evidence = evidence
        self._ceilings = Ceilings(contender.planner.rules)

    @property
    def side(self) -> Compared:
        rules = self._contender.planner.rules
        return Compared(self._contender.name, rules.version, self._ceilings.most_spent())

    @property
    def origin(self) -> str:
        return self._contender.setting.origin

    def outcome(self, recorded: Recorded) -> Outcome:
        planner = self._contender.planner
        setting = self._contender.setting._replace(now=recorded.at)
        admitted = admitted_of(recorded.number, recorded.raw, recorded.at)
        tenant = admitted.request.tenant
        found = self._found(planned := decided(planner, setting, admitted), recorded)
        held = max(bound_of(planned.plan), found.cost)
        if not self._ceilings.fits(recorded.at, tenant, held):
            planned = decided(planner, setting._replace(purse="spent"), admitted)
            found = self._found(planned, recorded)._replace(over_budget=True)
        self._ceilings.charge(recorded.at, tenant, found.cost)
        return found

    def _found(self, planned: Planned, recorded: Recorded) -> Outcome:
        return of_plan(planned.plan, recorded, self._evidence, self._contender.planner.rules.prices)


def _compare(
    traffic: Traffic,
    trials: tuple[_Trial | None, _Trial],
    evidence: Evidence,
    said: Mapping[str, Feedback],
    read: int,
) -> Report:
    before, after = trials
    total, tasks = Tally(), dict[str, Tally]()
    without = judged = cached = compared = 0
    for recorded in traffic.in_time():
        recorded = _with_feedback(recorded, said)
        judged += recorded.feedback is not None
        without += recorded.result is None
        cached += recorded.result is not None and recorded.result.cached
        old = of_record(recorded, evidence) if before is None else before.outcome(recorded)
        if old is None:
            continue
        compared += 1
        new = after.outcome(recorded)
        name = _name(recorded)
        total.add(name, old, new)
        tasks.setdefault(new.task or old.task or NO_TASK, Tally()).add(name, old, new)
    return Report(
        old=Compared(RECORDED, None) if before is None else before.side,
        new=after.side,
        registry=after.origin,
        records=Records(read, compared, traffic.bad(), without, judged, cached),
        total=total.row(),
        tasks={name: tasks[name].row() for name in sorted(tasks)},
        targets=_targets(evidence),
        judged=_judged(evidence),
    )


def _targets(evidence: Evidence) -> list[TargetRow]:
    return [
        TargetRow(
            f"{side}/{capability}",
            len(times),
            round(times.quantile(0.5) or 0.0, 3),
            round(times.quantile(0.95) or 0.0, 3),
            _six(evidence.cost((side, capability))),
        )
        for (side, capability), times in evidence.targets()
    ]


def _judged(evidence: Evidence) -> list[JudgedRow]:
    return [
        JudgedRow(
            task,
            dict(sides),
            None if bucket is None else bounds_of(bucket),
            round(said.share, 6),
            said.samples,
        )
        for task, sides, bucket, said in evidence.judged()
    ]


def _six(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _capabilities(old: Contender | None, new: Contender) -> Callable[[str | None, str], str]:
    return capability_in([each.planner.rules for each in (old, new) if each is not None])


def _with_feedback(recorded: Recorded, said: Mapping[str, Feedback]) -> Recorded:
    scoped = recorded.scoped
    found = None if scoped is None else said.get(scoped)
    return recorded if found is None else recorded._replace(feedback=found)


def _name(recorded: Recorded) -> str:
    result = recorded.result
    return recorded.request.id or (f"line-{recorded.number}" if result is None else result.id)


def by_scoped_id(feedback: Iterable[Feedback]) -> dict[str, Feedback]:
    """Feedback by scoped id; of several on one answer the last stands."""
    return {ids.scoped(each.tenant, each.id): each for each in feedback}
