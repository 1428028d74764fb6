"""The router's decision, built once for each version of the rules. Pure: no I/O, and time is an argument."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import msgspec

from schemas import ids
from schemas.messages import Failure, Plan, Request, RequestInfo, Result, Verdict
from schemas.rules import Rules
from streams.cache.keys import answer_key
from streams.claims.loading import holds_claims, swapped
from streams.privacy.examiner import examiner_of
from streams.privacy.verdict import NORMAL, verdict_of
from streams.registry.figures import View
from streams.router.admission import Admitted, info_of
from streams.router.ageing import backed, stale_s_of
from streams.router.constraints import CONSTRAINTS, Constraint, Purse, asked
from streams.router.decompose import Lexicon, TaskFound
from streams.router.decomposer import Decomposer, Splitter
from streams.router.keeping import versions_of
from streams.router.laying import Ask, Terms, step_options
from streams.router.opened import UNREAD, Opened
from streams.router.plan import Planned, plan, refusal
from streams.router.predictor import Predictor
from streams.router.prices import Prices
from streams.router.veil import Examines
from streams.strangers import RAISED

__all__ = ["Considered", "Found", "Planner", "Purse"]

log = logging.getLogger(__name__)

_OVERDUE = Failure(
    code="deadline_exceeded", message="the deadline had passed when the request was read; send it again"
)
_NO_STORE = Failure(
    code="object_missing",
    message="the request's inputs are in an object store and were not read; send them in the record",
)
_CANCELLED = Failure(code="cancelled", message="the caller cancelled the request before it was planned")
_CONFLICT = Failure(
    code="id_conflict",
    message="this id was used before with other content, whose answer stands; choose a new id",
)


class Found(msgspec.Struct, frozen=True):
    """A request with its task. The verdict in `info` is the least that holds: what the request, its tenant
    and its task declare; nothing has been examined yet. `key` is the cache key of the answer, where it may be
    kept."""

    admitted: Admitted
    task: TaskFound
    info: RequestInfo
    key: str | None = None


class Considered(msgspec.Struct, frozen=True):
    """A request with its task and its verdict (in `info`), and the mask where that is `masked`."""

    admitted: Admitted
    task: TaskFound
    info: RequestInfo
    mask: dict[str, str] = {}
    key: str | None = None
    opened: Opened | None = None


class Planner:
    """Decides on requests by `rules`.

    `examiner` gives the verdicts (None: the one that the rules name); `decomposers` and `predictors` are by
    task.

    Raises:
        UnknownDetector: the rules name a detector that is not there.
    """

    def __init__(
        self,
        rules: Rules,
        *,
        examiner: Examines | None = None,
        constraints: Sequence[Constraint] = CONSTRAINTS,
        decomposers: Mapping[str, Decomposer] | None = None,
        predictors: Mapping[str, Predictor] | None = None,
    ) -> None:
        self.rules = rules
        self._lexicon = Lexicon(rules)
        self._splitter = Splitter(rules, decomposers or {})
        self._terms = Terms(
            version=rules.version,
            constraints=asked(constraints),
            prices=Prices(rules),
            examiner=examiner_of(rules.privacy) if examiner is None else examiner,
            examination=rules.privacy,
            predictors=dict(predictors or {}),
        )
        self._own = self._own_terms() if examiner is None else {}

    def decide(self, admitted: Admitted, view: View, now: int, purse: Purse = "open") -> Planned:
        """The plan of a request, or the answer that refuses it."""
        considered = self.consider(admitted, now)
        return considered if isinstance(considered, Planned) else self.plan(considered, view, now, purse)

    def consider(self, admitted: Admitted, now: int) -> Considered | Planned:
        """Task and verdict of a request; Planned where it is refused."""
        found = self.find(admitted, now)
        if isinstance(found, Planned):
            return found
        # Nobody has read what it may claim.
        return self.examine(found, UNREAD if holds_claims(admitted.request.inputs) else None)

    def find(self, admitted: Admitted, now: int) -> Found | Planned:
        """The task of a request, by name, phrase or decomposer; Planned where it is refused."""
        request = admitted.request
        named = self._lexicon.find(request)
        if isinstance(named, Failure):
            return self._refused(admitted, named)
        task = self._splitter.split(request, named)
        if isinstance(task, Failure):
            return self._refused(admitted, task, named)
        info = self._info(admitted, task, self._floor(admitted, task))
        if info.deadline <= now:
            return self.refused(info, _OVERDUE)
        if request.claim is not None:
            return self.refused(info, _NO_STORE)
        return Found(admitted, task, info)

    def examine(self, found: Found, opened: Opened | None = None) -> Considered:
        """The verdict on a request, and on what its claims stand for; this may take milliseconds."""
        info, request = found.info, found.admitted.request
        if opened is not None:
            request = msgspec.structs.replace(request, inputs=swapped(request.inputs, opened.found))
        verdict, mask = info.privacy, dict[str, str]()
        if verdict.level == "normal":
            verdict = verdict_of(request, self._terms_of(found.task).examiner)
            if verdict.level == "normal" or verdict.masked:
                verdict = self._over_names(verdict, found.task)
            if verdict.masked:
                verdict, mask = self._masked(verdict, found.task, request)
            if verdict is not NORMAL:
                info = msgspec.structs.replace(info, privacy=verdict)
        return Considered(found.admitted, found.task, info, mask, found.key, opened)

    def plan(
        self,
        considered: Considered,
        view: View,
        now: int,
        purse: Purse = "open",
        *,
        keeps_steps: bool = False,
        left_budget: float | None = None,
        older: Result | None = None,
    ) -> Planned:
        """Plan a request by what is alive in `view` and what the budget said. `keeps_steps`: there is a cache
        for the answers of steps. `left_budget` is what is left of the budget, where that is known; `older` is
        an answer that may stand in where there is no other."""
        ask = Ask(
            request=considered.admitted.request,
            info=considered.info,
            task=considered.task,
            terms=self._terms_of(considered.task),
            now=now,
            purse=purse,
            mask=considered.mask,
            key=considered.key,
            keeps_steps=keeps_steps,
            left_budget=left_budget,
            opened=considered.opened,
        )
        return backed(plan(ask, view), older, now)

    def keyed(self, found: Found, view: View) -> Found:
        """`found` with the cache key of its whole answer, where that may be kept for equal requests."""
        if found.info.privacy.level != "normal":
            return found
        if not self.rules.cache_s and not stale_s_of(self.rules, found.task.rule):
            return found
        versions: list[str] = []
        for step in found.task.steps:
            more = versions_of(step, step_options(step), view)
            if more is None:
                return found
            versions += more
        key = answer_key(found.admitted.request, found.task.name, self.rules.version, versions)
        return msgspec.structs.replace(found, key=key)

    def cached(self, found: Found, answer: Result) -> Planned:
        """A plan that is the kept `answer` to an equal request."""
        return Planned(
            Plan(request=found.info, rules=self.rules.version, decisions=answer.decisions, answer=answer), ()
        )

    def conflict(self, admitted: Admitted) -> Planned:
        """The refusal of a request whose id was used for other content, under an id of its own."""
        as_id = ids.conflicting(admitted.id, admitted.digest)
        verdict = self._floor(admitted, None)
        return self.refused(info_of(admitted, verdict, admitted.request.task, None, as_id), _CONFLICT)

    def cancelled(self, admitted: Admitted) -> Planned:
        """The answer to a request whose caller no longer wants one."""
        verdict = self._floor(admitted, None)
        return self.refused(info_of(admitted, verdict, admitted.request.task, None), _CANCELLED)

    def declined(self, admitted: Admitted, failure: Failure) -> Planned:
        """A plan whose answer is `failure`, to a request whose task was not looked for."""
        return self._refused(admitted, failure)

    def refused(self, info: RequestInfo, failure: Failure) -> Planned:
        """A plan whose answer is `failure`."""
        return Planned(refusal(info, failure, self.rules.version), ())

    def _refused(self, admitted: Admitted, failure: Failure, task: TaskFound | None = None) -> Planned:
        verdict = self._floor(admitted, task)
        if verdict.level == "normal":
            verdict = verdict_of(admitted.request, self._terms_of(task).examiner)
        name = admitted.request.task if task is None else task.name
        return self.refused(info_of(admitted, verdict, name, None), failure)

    def _info(self, admitted: Admitted, task: TaskFound, verdict: Verdict) -> RequestInfo:
        deadline_ms, tenants = task.rule.deadline_ms, self.rules.tenants
        if tenants and admitted.request.tenant is not None:
            tenant = tenants.get(admitted.request.tenant)
            if tenant is not None and tenant.deadline_ms is not None:
                deadline_ms = tenant.deadline_ms
        return info_of(admitted, verdict, task.name, deadline_ms)

    def _floor(self, admitted: Admitted, task: TaskFound | None) -> Verdict:
        """The level that request, tenant and task declare, with the reasons."""
        request, tenants = admitted.request, self.rules.tenants
        tenant = tenants.get(request.tenant) if tenants and request.tenant is not None else None
        if request.privacy == "normal" and tenant is None and (task is None or task.rule.privacy == "normal"):
            return NORMAL
        reasons = [
            name
            for name, level in (
                ("declared", request.privacy),
                ("tenant", "normal" if tenant is None else tenant.privacy),
                ("task", "normal" if task is None else task.rule.privacy),
            )
            if level != "normal"
        ]
        return Verdict(level="high", reasons=tuple(reasons)) if reasons else NORMAL

    def _own_terms(self) -> dict[str, Terms]:
        """The terms of the tasks that are examined in a way of their own."""
        whole, own = self.rules.privacy, dict[str, Terms]()
        for name, task in self.rules.tasks.items():
            examination = task.examination(whole)
            if examination is not whole:
                own[name] = self._terms._replace(examiner=examiner_of(examination), examination=examination)
        return own

    def _terms_of(self, task: TaskFound | None) -> Terms:
        return self._terms if task is None else self._own.get(task.name, self._terms)

    def _over_names(self, verdict: Verdict, task: TaskFound) -> Verdict:
        """`verdict`, raised where a decomposer made a step's name of what must stay: every subtask carries
        its name, and no mask lies over it."""
        ruled = self._lexicon.steps_of(task.name)
        if task.steps is ruled:
            return verdict
        made = {step.name for step in task.steps}.difference(step.name for step in ruled)
        named = self._terms_of(task).examiner.examine(*sorted(made))
        if named.level == "normal":
            return verdict
        return Verdict(level="high", reasons=tuple(sorted({*verdict.reasons, *named.reasons})))

    def _masked(self, verdict: Verdict, task: TaskFound, request: Request) -> tuple[Verdict, dict[str, str]]:
        try:
            examiner = self._terms_of(task).examiner
            return verdict, examiner.mask(request.query, request.inputs, request.params)
        except KeyboardInterrupt:
            raise
        except RAISED as error:  # whatever a detector raises means local
            log.error("the mask failed (%s); the request stays local", type(error).__name__)
            return Verdict(level="high", reasons=verdict.reasons), {}
