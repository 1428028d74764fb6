"""A log and one table after another over it, with a judge: what a table may never do fails at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from schemas.codec import decode, encode
from schemas.ids import scoped, subtask_id
from schemas.messages import DEGRADED, Checkpoint, Failure, JoinEvent, Partial, Plan, Result
from streams.aggregator import Counts, Dispatch, Effects, Join, Limits, Place, Table
from streams.aggregator.answers import INACCURATE
from streams.aggregator.leavings import paid_of, unneeded_of
from streams.aggregator.takeover import LOOK_BACK_MS
from streams.merge import BUILT_IN
from tests.helpers.aggregation import T0

REFUSED = Failure(code="no_placement", message="found out at the examination")
BAD = Failure(code="malformed", message="no message")
BASE = 4
"""Costs are powers of it, another one for each subtask of a request: a sum shows what it is made of."""


class Written(NamedTuple):
    """A record of `joins`; a string stands for bytes that nobody can read, under that key."""

    event: Plan | Partial | Checkpoint | str
    at: int


class Pending(NamedTuple):
    """What goes out together; the offsets are finished once it is acknowledged."""

    finished: tuple[int, ...]
    events: tuple[Checkpoint, ...]
    answers: tuple[tuple[str, Result], ...]


def cost_of(step: str, side: str, attempt: int) -> float:
    """The cost of a subtask: a digit of its own."""
    return float(BASE ** -("stu".index(step) * 4 + (side == "cloud") * 2 + attempt))


class Succession:
    """One owner of the partition after another. `results` are (scoped id, append time, Result); `asked` has
    the plans of each scoped id. The sets below `sent` are of the present life."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = Limits() if limits is None else limits
        self.now = T0
        self.log: list[Written] = []
        self.results: list[tuple[str, int, Result]] = []
        self.asked: dict[str, list[Plan]] = {}
        self.cancelled: set[str] = set()
        self.committed = 0
        self._begin()

    def _begin(self) -> None:
        self.table = Table(BUILT_IN, self.limits, Counts(), self.cancelled)
        self.position = self.committed
        self.end = len(self.log)
        self.table.absorbing, self.table.may_shed = True, False
        since = (self.log[self.position].at if self.position < self.end else self.now) - LOOK_BACK_MS
        self.unheard = [(key, result.digest) for key, at, result in self.results if at >= since]
        self.unreadable: list[tuple[str, int]] = []
        self.pending: list[Pending] = []
        self.sent: set[str] = set()
        self.released: set[str] = set()
        self.said: set[str] = set()
        self.finished: set[int] = set()
        self.durable: set[int] = set()

    # What may happen.

    def append(self, event: Plan | Partial | str) -> None:
        if isinstance(event, Plan):
            self.asked.setdefault(scoped(event.request.tenant, event.request.id), []).append(event)
        self.log.append(Written(event, self.now))

    def read(self, most: int = 1, *, refuses: bool = False) -> None:
        """Hand out records in one batch; where it `refuses`, no dispatch can be sent."""
        effects = Effects()
        for offset in range(self.position, min(len(self.log), self.position + most)):
            self.position = offset + 1
            self._take(offset, *self.log[offset], effects)
        self._activate(effects)
        self._carry_out(effects, refuses)

    def hear(self, most: int = 1) -> None:
        """Read what stands on `results`."""
        effects = Effects()
        heard, self.unheard = self.unheard[:most], self.unheard[most:]
        for key, digest in heard:
            self.table.answered_before(key, digest, self.now, effects)
        self._carry_out(effects)

    def tick(self, *, refuses: bool = False) -> None:
        effects = Effects()
        self._activate(effects)
        self.table.tick(self.now, effects)
        if not self.table.absorbing:
            for join in self.table._joins.values():
                assert join.plan.request.deadline > self.now, f"{join.id} is open beyond its deadline"
        self._carry_out(effects, refuses)

    def cancel(self, key: str) -> None:
        self.cancelled.add(key)
        self.table.cancel(key, self.now)

    def acknowledge(self, most: int | None = None) -> None:
        """The first `most` writes reach the log, and their offsets are finished and committed."""
        for _ in range(len(self.pending) if most is None else most):
            self._write(self.pending.pop(0), durable=True)
        while self.committed in self.durable:
            self.committed += 1

    def take_over(self, written: int = 0) -> None:
        """The owner dies, of whose writes the first `written` stand in the log without being committed."""
        for pending in self.pending[:written]:
            self._write(pending, durable=False)
        self._begin()

    def settle(self) -> None:
        """Let everything come to rest at this time."""
        for _ in range(20):
            self.read(len(self.log))
            self.hear(len(self.unheard))
            self.tick()
            if not self.pending and self.position == len(self.log):
                return
            self.acknowledge()
        raise AssertionError("it never comes to rest")

    # What follows.

    def _take(self, offset: int, event: Any, at: int, effects: Effects) -> None:
        place, table = Place(offset, at, 100), self.table
        if isinstance(event, str):
            self.unreadable.append((event, offset))
        elif isinstance(event, Partial):
            table.partial(event, place, self.now, effects)
        elif isinstance(event, Plan):
            self.released.difference_update(paid_of(event))  # its router set the money aside anew
            table.plan(event, place, self.now, effects)
            self._release(effects)
        else:
            table.checkpoint(event, place, self.now, effects)
        if not table.absorbing:
            self._fail_unreadable(effects)

    def _activate(self, effects: Effects) -> None:
        if self.table.absorbing and self.position >= self.end and not self.unheard:
            self.table.activate(self.now)
            self._fail_unreadable(effects)

    def _fail_unreadable(self, effects: Effects) -> None:
        for key, offset in self.unreadable:
            self.table.refuse(key, BAD, self.now, effects)
            effects.finished.append(offset)
        self.unreadable.clear()

    def _carry_out(self, effects: Effects, refuses: bool = False) -> None:
        for join, dispatch in effects.dispatches:
            if join.is_over:
                continue
            self._judge_dispatch(join, dispatch)
            if refuses:
                self.table.attempt_failed(join, dispatch, REFUSED, self.now, effects)
        events = []
        for join in effects.checkpoints:
            if not join.is_over:
                events.append(decode(encode(join.checkpoint()), JoinEvent))
                self.table.written_again(join, effects)
        for answer in effects.answers:
            self._judge_answer(answer.key, answer.result)
        for join, _ in effects.closed:
            self.released.update(unneeded_of(join))
        self._release(effects)
        for offset in effects.finished:
            assert offset < self.position
            assert offset not in self.finished, f"offset {offset} is finished twice"
            self.finished.add(offset)
        answers = tuple((answer.key, answer.result) for answer in effects.answers)
        if effects.finished or events or answers:
            self.pending.append(Pending(tuple(effects.finished), tuple(events), answers))

    def _release(self, effects: Effects) -> None:
        self.released.update(effects.unneeded)
        effects.unneeded.clear()

    def _write(self, pending: Pending, *, durable: bool) -> None:
        for event in pending.events:
            self.log.append(Written(event, self.now))
        for key, result in pending.answers:
            assert all(key != known for known, _, _ in self.results), f"{key} is answered twice"
            self.results.append((key, self.now, result))
        if durable:
            self.durable.update(pending.finished)

    # The judge.

    def _judge_dispatch(self, join: Join, dispatch: Dispatch) -> None:
        step = next(one for one in join.plan.steps if one.name == dispatch.step)
        assert any(join.plan.steps == plan.steps for plan in self.asked[join.id]), "a plan nobody made"
        attempt = step.attempts[dispatch.attempt]
        subtask = subtask_id(join.id, step.name, attempt.side, dispatch.attempt)
        assert dispatch.trigger in attempt.triggers
        assert attempt.side == "local" or join.plan.request.privacy.cloud_allowed, "across the privacy line"
        assert subtask not in self.sent, f"{subtask} is sent twice"
        assert not (attempt.max_cost and subtask in self.released), f"{subtask} has its money given back"
        self.sent.add(subtask)

    def _judge_answer(self, key: str, result: Result) -> None:
        assert key not in self.said, f"{key} is answered twice in one life"
        self.said.add(key)
        assert (result.status == "error") == (result.error is not None and not result.sides), result
        words = set(result.degraded)
        assert words <= set(DEGRADED)
        assert (result.status == "partial") == ("parts_missing" in words)
        assert result.approximate == bool(words - {"parts_missing"})
        assert result.approximate == (INACCURATE in result.warnings[:1])
        self._judge_cost(key, result)

    def _judge_cost(self, key: str, result: Result) -> None:
        """Every subtask that answered counts once at most, and the ones whose answers were taken do."""
        spent = {
            event.subtask
            for event, _ in self.log
            if isinstance(event, Partial) and event.subtask.startswith(f"{key}/")
        }
        digits = digits_of(result.cost)
        assert set(digits) <= {0, 1}, f"{key} counts a cost twice: {result.cost}"
        assert result.cost <= sum(_cost(subtask) for subtask in spent)
        for subtask in _taken(result):
            assert subtask in spent
            assert digits[_place(subtask)] == 1, f"the cost of {subtask} is forgotten"


def digits_of(cost: float) -> list[int]:
    number = int(cost * BASE**12)
    return [number // BASE ** (12 - place) % BASE for place in range(12)]


def _taken(result: Result) -> Iterable[str]:
    outputs = result.output if isinstance(result.output, dict) else {}
    return [output["of"] for output in outputs.values() if isinstance(output, dict) and "of" in output]


def _cost(subtask: str) -> float:
    step, side, attempt = subtask.split("/")[-3:]
    return cost_of(step, side, int(attempt))


def _place(subtask: str) -> int:
    step, side, attempt = subtask.split("/")[-3:]
    return "stu".index(step) * 4 + (side == "cloud") * 2 + int(attempt)


def keys_of(results: Collection[tuple[str, int, Result]]) -> set[str]:
    return {key for key, _, _ in results}
