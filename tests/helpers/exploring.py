"""States of a Succession: copied, told apart, and followed one event at a time."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable, Sequence
from typing import Any

from schemas.messages import Partial, Plan
from streams.aggregator import Counts, Join, Table
from streams.aggregator.answered import Answered
from streams.aggregator.orphans import Orphans
from streams.aggregator.progress import Progress
from streams.aggregator.timers import Timers
from tests.helpers.succession import Succession

_LIVE = (Succession, Table, Join, Progress, Orphans, Answered, Timers, Counts)
"""What changes; everything else that they hold is frozen, or a plain container."""


def copied(thing: Any, seen: dict[int, Any] | None = None) -> Any:
    """`thing` with all that can change in it; what two parts share they share in the copy."""
    seen = {} if seen is None else seen
    kind = type(thing)
    if kind in (str, int, float, bool, tuple) or thing is None:
        return thing
    if id(thing) in seen:
        return seen[id(thing)]
    if kind in (dict, OrderedDict):
        new = seen[id(thing)] = kind()
        for key, value in thing.items():
            new[key] = copied(value, seen)
        return new
    if kind in (list, deque):
        new = seen[id(thing)] = kind()
        new.extend([copied(one, seen) for one in thing])
        return new
    if kind is set:
        new = seen[id(thing)] = set(thing)
        return new
    if kind not in _LIVE:
        return thing
    new = seen[id(thing)] = kind.__new__(kind)
    for name in getattr(kind, "__slots__", None) or vars(thing):
        setattr(new, name, copied(getattr(thing, name), seen))
    return new


class Explorer:
    """Follows every order in which `events` may be appended and read, with one crash at every point.

    `states` counts the different ones that were met, before the crash and after it; `endings` the ends that
    were judged.
    """

    def __init__(self, events: Sequence[Plan | Partial]) -> None:
        self._labels: dict[int, int] = {}
        self._events: list[Plan | Partial] = []
        self._times: dict[int, int] = {}
        for event in events:
            known = next((label for label, one in enumerate(self._events) if one == event), None)
            if known is None:
                known = len(self._events)
                self._events.append(event)
                self._labels[id(event)] = known
            self._times[known] = self._times.get(known, 0) + 1
        self.states = {"before": 0, "after": 0}
        self.endings = 0

    def run(self) -> None:
        """Raises AssertionError at the first thing that may not be."""
        begun = Succession()
        begun.tick()
        before, after = [begun], []
        seen_before, seen_after = {hash(self._name(begun, ordered=True))}, set()

        def note(world: Succession, seen: set[int], waiting: list[Succession], ordered: bool) -> bool:
            name = hash(self._name(world, ordered))  # the names themselves would take gigabytes
            if name in seen:
                return False
            seen.add(name)
            waiting.append(world)
            return True

        while before:
            world = before.pop()
            for written in range(len(world.pending) + 1):
                crashed = copied(world)
                crashed.take_over(written)
                if note(crashed, seen_after, after, ordered=False):
                    self._end(copied(crashed))
            for label in self._left(world):
                new = copied(world)
                new.append(self._events[label])
                new.read()
                note(new, seen_before, before, ordered=True)
            if world.pending:
                new = copied(world)
                new.acknowledge(1)
                note(new, seen_before, before, ordered=True)
        while after:
            world = after.pop()
            moves = self._moves_after(world)
            for new in moves:
                note(new, seen_after, after, ordered=False)
            if not moves:
                self._end(world)
        self.states = {"before": len(seen_before), "after": len(seen_after)}

    def _moves_after(self, world: Succession) -> list[Succession]:
        """Every next state of an owner that took over. When its writes are acknowledged changes nothing for
        it, nor does when a record is appended that it has not read yet."""
        moves = []
        if world.position < len(world.log):
            new = copied(world)
            new.read()
            moves.append(new)
        else:
            for label in self._left(world):
                new = copied(world)
                new.append(self._events[label])
                new.read()
                moves.append(new)
        if world.unheard:
            new = copied(world)
            new.hear(len(new.unheard))
            moves.append(new)
        for new in moves:
            new.tick()
        return moves

    def _left(self, world: Succession) -> list[int]:
        met: dict[int, int] = {}
        for written in world.log:
            label = self._labels_of(written.event)
            met[label] = met.get(label, 0) + 1
        return [label for label, times in self._times.items() if met.get(label, 0) < times]

    def _labels_of(self, event: Any) -> int:
        return self._labels[id(event)]

    def _end(self, world: Succession) -> None:
        """Whatever is not in the log by now is lost: each request that is has its one answer at last."""
        self.endings += 1
        asked = {key for key, plans in world.asked.items() if plans}
        world.settle()
        world.now += 10_000
        world.settle()
        assert {key for key, _, _ in world.results} == asked
        assert world.committed == len(world.log)
        assert (len(world.table), world.table.size) == (0, 0)

    def _name(self, world: Succession, ordered: bool) -> Hashable:
        """What tells this state from others: nothing that only says in which order it came about. The order
        of the log counts as long as somebody may have to read it again."""
        labels = [self._labels_of(written.event) for written in world.log]
        tail = labels[world.committed :]
        unread = labels[world.position :]
        table = world.table

        def named(offsets: Any) -> tuple[int, ...]:
            return tuple(sorted(labels[offset] for offset in offsets))

        return (
            tuple(tail)
            if ordered
            else (tuple(sorted(tail)), tuple(unread), max(0, world.end - world.position)),
            tuple(sorted(labels)),
            tuple(sorted((key, result.status) for key, _, result in world.results)),
            tuple((named(one.finished), tuple(key for key, _ in one.answers)) for one in world.pending)
            if ordered
            else (),
            tuple(world.unheard),
            frozenset(world.sent),
            frozenset(world.released),
            frozenset(world.said),
            named(world.durable),
            named(world.finished),
            table.absorbing,
            frozenset(table._answered._entries),
            tuple(
                sorted(
                    (key, *sorted(labels[orphan.offset] for orphan in waiting))
                    for key, waiting in table._orphans._waiting.items()
                )
            ),
            tuple(_join_name(join, named) for _, join in sorted(table._joins.items())),
        )


def _join_name(join: Join, named: Any) -> Hashable:
    return (
        join.id,
        join.scheduled,
        named(join.offsets),
        frozenset((subtask, partial.error is None) for subtask, partial in join.partials.items()),
        tuple(_step_name(step) for step in join.steps.values()),
    )


def _step_name(step: Progress) -> Hashable:
    return (
        tuple(sorted(step.started.items())),
        tuple(sorted(step.triggers.items())),
        frozenset(step.failures),
        frozenset(step.weak),
        step.slot,
        step.approximate,
        None if step.answer is None else step.answer.subtask,
        None if step.failure is None else step.failure.code,
    )
