"""The open joins of one lane: pure, with time and the outside world as arguments."""

from __future__ import annotations

from collections.abc import Container, Mapping

from schemas.ids import parse_subtask_id, scoped
from schemas.messages import Checkpoint, Failure, Partial, Plan, RequestInfo, Result
from streams.aggregator import refusals
from streams.aggregator.answered import Answered
from streams.aggregator.answers import answer, refusal
from streams.aggregator.effects import Answer, Effects, Place
from streams.aggregator.join import CANCELLED, Dispatch, Join
from streams.aggregator.leavings import paid_of
from streams.aggregator.limits import Counts, Limits
from streams.aggregator.orphans import Orphan, Orphans
from streams.aggregator.timers import Timers
from streams.merge import Strategy

_ALL = float("inf")


class Table:
    """Takes in the records of a lane and says what follows from them.

    While `absorbing` (a takeover still reads the log) it draws no conclusions. An offset not yet finished is
    held by a join or an orphan. A request whose scoped id is among the `cancelled` is answered so.
    """

    def __init__(
        self,
        strategies: Mapping[str, Strategy],
        limits: Limits,
        counts: Counts,
        cancelled: Container[str] = frozenset(),
    ) -> None:
        self._strategies = strategies
        self._limits = limits
        self._counts = counts
        self._cancelled = cancelled
        self._joins: dict[str, Join] = {}
        self.joins: Mapping[str, Join] = self._joins
        self._orphans = Orphans()
        self._answered = Answered(limits)
        self._timers = Timers(self._joins)
        self._size = 0
        self.absorbing = False
        self.may_shed = True

    def __len__(self) -> int:
        return len(self._joins)

    @property
    def size(self) -> int:
        """Bytes of the records held."""
        return self._size + self._orphans.size

    @property
    def is_full(self) -> bool:
        return len(self._joins) >= self._limits.joins or self.size >= self._limits.bytes

    def plan(self, plan: Plan, place: Place, now: int, effects: Effects) -> None:
        """A plan opens a join, unless its request is open or answered already."""
        request = plan.request
        key = scoped(request.tenant, request.id)
        join = self._joins.get(key)
        if join is not None:
            if place.offset not in join.offsets:
                self._again(join, plan, place, now, effects)
        elif key not in self._answered:
            self._open(Join(plan, place.at), place, now, effects)
        else:
            effects.unneeded += paid_of(plan)
            if self._answered.conflicts(key, request.digest):
                self._conflict(plan, [place.offset], now, effects)
            else:
                self._drop_duplicate(place, effects)

    def partial(self, partial: Partial, place: Place, now: int, effects: Effects) -> None:
        """A partial moves its join on, waits for it, or comes too late.

        Raises:
            Malformed: where its subtask id is none.
        """
        subtask = parse_subtask_id(partial.subtask)
        join = self._joins.get(subtask.request)
        if join is not None:
            if join.take(partial, subtask, place.at):
                self._hold(join, place)
                self._conclude(join, now, effects)
            elif place.offset not in join.offsets:
                self._drop_duplicate(place, effects)
        elif subtask.request in self._answered:
            self._counts.late += 1
            effects.finished.append(place.offset)
        else:
            self._orphans.add(subtask.request, Orphan(partial, place.offset, place.at, place.size, now))
            if len(self._orphans) > self._limits.orphans or self.is_full:
                self._drop_orphans(_ALL, effects, most=1)

    def checkpoint(self, checkpoint: Checkpoint, place: Place, now: int, effects: Effects) -> None:
        """A checkpoint is our own, read back, or restores the join of an owner before us."""
        request = checkpoint.plan.request
        key = scoped(request.tenant, request.id)
        join = self._joins.get(key)
        if join is not None and not refusals.same(join.plan.request.digest, request.digest):
            # The owner who wrote it had refused the plan that we read first.
            refused, join = join, refusals.rightful(join, checkpoint, place.at)
            self._joins[key] = join
            self._conflict(refused.plan, [], now, effects)
            self._clear(refusals.conflict_key(request, request.digest), effects)
        if join is not None:
            join.merge(checkpoint, place.at)
            if place.offset not in join.offsets:
                self._hold(join, place)
            self._conclude(join, now, effects)
        elif key in self._answered:
            effects.finished.append(place.offset)
        else:
            self._open(Join.restore(checkpoint, place.at), place, now, effects)

    def refuse(self, key: str, failure: Failure, now: int, effects: Effects) -> None:
        """A record of this request cannot be read: the request fails, unless it is answered."""
        join = self._joins.get(key)
        if join is not None:
            join.refuse(failure)
            self._conclude(join, now, effects)
        elif key not in self._answered:
            request = refusals.unknown(key, now)
            self._say(key, request, refusal(request, failure), now, effects)

    def cancel(self, key: str, now: int) -> bool:
        """The caller of `key` no longer wants its answer: an open join is closed by the next tick. False
        where none is open.

        Not at once: like a deadline, this is no record of the lane, and speaks under the same rule.
        """
        join = self._joins.get(key)
        if join is None or join.doom is not None:
            return False
        join.refuse(CANCELLED)
        if not self.absorbing:
            self._timers.set(join, now)
        return True

    def attempt_failed(
        self, join: Join, dispatch: Dispatch, failure: Failure, now: int, effects: Effects
    ) -> None:
        """A dispatch that came out of this table could not be sent."""
        join.attempt_failed(dispatch.step, dispatch.attempt, failure)
        self._conclude(join, now, effects)

    def answered_before(self, key: str, digest: str | None, at: int, effects: Effects) -> None:
        """An owner before us answered this request: a result of it stands in the log."""
        self._answered.add(key, digest, at)
        join = self._joins.pop(key, None)
        if join is not None:
            self._let_go(join)
            if refusals.same(join.plan.request.digest, digest):
                effects.finished.extend(join.offsets)
            else:
                self._conflict(join.plan, join.offsets, at, effects)
                self._clear(refusals.conflict_key(join.plan.request, digest), effects)
        for orphan in self._orphans.adopt(key):
            self._counts.late += 1
            effects.finished.append(orphan.offset)

    def activate(self, now: int) -> None:
        """The log is read: from the next tick on draw conclusions, starting with all that waited for them."""
        self.absorbing = False
        self.may_shed = True
        self._orphans.restart(now)
        for join in self._joins.values():
            self._timers.set(join, now)

    def tick(self, now: int, effects: Effects) -> None:
        """Act on what is due: deadlines, silence, checkpoints, orphans; `Limits.timers` joins at most."""
        if self.absorbing:
            return
        for _ in range(self._limits.timers):
            join = self._timers.pop(now)
            if join is None:
                break
            self._conclude(join, now, effects)
            if not join.is_over and now >= join.checkpoint_at:
                join.checkpoint_at = now + self._limits.checkpoint_ms
                effects.checkpoints.append(join)
                self._schedule(join)
        self._timers.compact()
        self._drop_orphans(now - self._limits.orphan_ms, effects, most=self._limits.timers)

    def written_again(self, join: Join, effects: Effects) -> None:
        """The join's checkpoint goes out with these effects: what held it so far may finish with them."""
        effects.finished.extend(join.offsets)
        join.offsets.clear()
        self._size -= join.size
        join.size = 0
        self._counts.checkpoints += 1

    def _open(self, join: Join, place: Place, now: int, effects: Effects) -> None:
        join.checkpoint_at = place.at + self._limits.checkpoint_ms
        while len(self._orphans) and self.size >= self._limits.bytes:
            self._drop_orphans(_ALL, effects, most=1)
        if join.id in self._cancelled:
            join.refuse(CANCELLED)
        # What is answered by itself holds nothing, unless a takeover must hear first what was answered.
        is_held = self.absorbing or (join.doom is None and join.plan.answer is None)
        if is_held and self.is_full and self.may_shed:
            self._counts.shed += 1
            join.refuse(refusals.OVERLOADED)
            self._close(join, [place.offset], now, effects)
            return
        self._joins[join.id] = join
        self._hold(join, place)
        for orphan in self._orphans.adopt(join.id):
            place = Place(orphan.offset, orphan.at, orphan.size)
            if join.take(orphan.partial, parse_subtask_id(orphan.partial.subtask), orphan.at):
                self._hold(join, place)
            else:
                self._drop_duplicate(place, effects)
        self._conclude(join, now, effects)

    def _again(self, join: Join, plan: Plan, place: Place, now: int, effects: Effects) -> None:
        """Another plan of an open request. What it set aside for subtasks that the other lacks is free."""
        if not refusals.same(join.plan.request.digest, plan.request.digest):
            self._conflict(plan, [place.offset], now, effects)
        elif join.can_be_replaced_by(plan):
            older = join.plan
            join.replace(plan, place.at)
            self._hold(join, place)
            self._conclude(join, now, effects)
            plan = older
        else:
            self._drop_duplicate(place, effects)
        needed = set(paid_of(join.plan))
        effects.unneeded += [subtask for subtask in paid_of(plan) if subtask not in needed]

    def _conflict(self, plan: Plan, offsets: list[int], now: int, effects: Effects) -> None:
        self._counts.conflicts += 1
        join = refusals.conflict_of(plan, now)
        if join.id in self._joins or join.id in self._answered:
            effects.finished.extend(offsets)
            return
        join.offsets.extend(offsets)
        self._joins[join.id] = join
        self._conclude(join, now, effects)

    def _clear(self, key: str, effects: Effects) -> None:
        """What was answered was held for a conflict, as another's plan was read before it."""
        join = self._joins.pop(key, None)
        if join is not None:
            self._let_go(join)
            effects.finished.extend(join.offsets)

    def _conclude(self, join: Join, now: int, effects: Effects) -> None:
        if self.absorbing:
            return
        for dispatch in join.advance(now):
            effects.dispatches.append((join, dispatch))
        if join.is_over:
            self._joins.pop(join.id, None)
            self._close(join, join.offsets, now, effects)
            self._let_go(join)
        else:
            self._schedule(join)

    def _close(self, join: Join, offsets: list[int], now: int, effects: Effects) -> None:
        effects.finished.extend(offsets)
        join.is_over = True
        result = answer(join, self._strategies, now)
        self._counts.cancelled += join.doom is CANCELLED
        effects.closed.append((join, result))
        self._say(join.id, join.plan.request, result, now, effects)

    def _say(self, key: str, request: RequestInfo, result: Result, now: int, effects: Effects) -> None:
        self._answered.add(key, request.digest, now)
        self._counts.answered(result.status, approximate=result.approximate)
        effects.answers.append(Answer(key, request, result))

    def _let_go(self, join: Join) -> None:
        join.is_over = True
        self._size -= join.size

    def _hold(self, join: Join, place: Place) -> None:
        join.offsets.append(place.offset)
        join.size += place.size
        self._size += place.size

    def _schedule(self, join: Join) -> None:
        self._timers.set(join, min(join.due(), join.checkpoint_at))

    def _drop_duplicate(self, place: Place, effects: Effects) -> None:
        self._counts.duplicates += 1
        effects.finished.append(place.offset)

    def _drop_orphans(self, before: float, effects: Effects, *, most: int) -> None:
        for orphan in self._orphans.drop(before, most):
            self._counts.orphans += 1
            effects.finished.append(orphan.offset)
