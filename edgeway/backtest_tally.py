"""Counts what becomes of each request under two rule sets, for the report. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from edgeway.backtest_evidence import Times
from edgeway.backtest_outcome import Outcome, StepOutcome
from edgeway.backtest_report import MOVED, Latency, Move, Pair, Quality, Row

_SHOWN = 5


def moves_of(old: Outcome, new: Outcome, first: bool = False) -> list[tuple[str, Move]]:
    """What happens to each step: by who answers it, or by where it is sent `first`."""
    if old.refused or new.refused:
        names: dict[str, None] = dict.fromkeys((*old.steps, *new.steps)) or {"": None}
        move: Move = (
            "still_refused"
            if old.refused and new.refused
            else "newly_refused"
            if new.refused
            else "newly_answered"
        )
        return [(name, move) for name in names]
    found: list[tuple[str, Move]] = []
    for name in dict.fromkeys((*old.steps, *new.steps)):
        before, after = old.steps.get(name), new.steps.get(name)
        if before is None or after is None:
            found.append((name, "added" if before is None else "dropped"))
        else:
            found.append((name, _move(before, after, first)))
    return found


def _move(before: StepOutcome, after: StepOutcome, first: bool) -> Move:
    was = before.first if first else before.answered
    is_now = after.first if first else after.answered
    if was == is_now:
        return "stays_local" if was == "local" else "stays_cloud"
    return "local_to_cloud" if was == "local" else "cloud_to_local"


class Tally:
    """Counts pairs of outcomes; `row` is what they come to."""

    def __init__(self) -> None:
        self._requests = 0
        self._moves: Counter[str] = Counter()
        self._first: Counter[str] = Counter()
        self._unsure = 0
        self._refused = [0, 0]
        self._over = [0, 0]
        self._cost = [0.0, 0.0]
        self._bound: list[float | None] = [0.0, 0.0]
        self._times = (Times(), Times())
        self._right = [0.0, 0.0]
        self._judged = self._estimated = self._unknown = self._unknown_moved = 0
        self._least: int | None = None
        self._leaves = [0, 0]
        self._examples: dict[str, list[str]] = {}

    def add(self, name: str, old: Outcome, new: Outcome) -> None:
        """One request, by its id."""
        self._requests += 1
        for _, move in (moves := moves_of(old, new)):
            self._moves[move] += 1
        for move in dict.fromkeys(move for _, move in moves if move in MOVED):
            self._example(move, name)
        for _, move in moves_of(old, new, first=True):
            self._first[move] += 1
        self._unsure += sum(
            not (old.steps.get(step, _SURE).sure and new.steps.get(step, _SURE).sure)
            for step in {*old.steps, *new.steps}
        )
        for place, outcome in enumerate((old, new)):
            self._refused[place] += outcome.refused is not None
            self._over[place] += outcome.over_budget
            self._cost[place] += outcome.cost
            bound = self._bound[place]
            self._bound[place] = None if bound is None or outcome.bound is None else bound + outcome.bound
        self._add_times(old, new)
        self._add_quality(old, new)
        self._add_privacy(name, old, new)

    def row(self) -> Row:
        """The counts so far."""
        steps = sum(self._moves.values())
        return Row(
            requests=self._requests,
            steps=steps,
            moves=dict(sorted(self._moves.items())),
            first=dict(sorted(self._first.items())),
            moved=_share(sum(self._moves[move] for move in MOVED), steps),
            unsure=self._unsure,
            refused=Pair(*self._refused),
            cost=_rounded(self._cost),
            bound=_rounded(self._bound),
            latency_ms=self._latency(),
            quality=self._quality(),
            may_leave_now=self._leaves[0],
            must_stay_now=self._leaves[1],
            over_budget=Pair(*self._over),
            examples=dict(sorted(self._examples.items())),
        )

    def _example(self, what: str, name: str) -> None:
        known = self._examples.setdefault(what, [])
        if len(known) < _SHOWN:
            known.append(name)

    def _add_times(self, old: Outcome, new: Outcome) -> None:
        if old.took_ms is not None and new.took_ms is not None:
            self._times[0].add(old.took_ms)
            self._times[1].add(new.took_ms)

    def _add_quality(self, old: Outcome, new: Outcome) -> None:
        if old.refused or new.refused:
            return
        if old.right is None or new.right is None:
            self._unknown += 1
            self._unknown_moved += _answered(old) != _answered(new)
            return
        self._judged += 1
        self._right[0] += old.right.share
        self._right[1] += new.right.share
        guessed = [each.samples for each in (old.right, new.right) if not each.own]
        if guessed:
            self._estimated += 1
            self._least = min([*guessed, *([] if self._least is None else [self._least])])

    def _add_privacy(self, name: str, old: Outcome, new: Outcome) -> None:
        if old.leaves is None or new.leaves is None or old.leaves == new.leaves:
            return
        self._leaves[0 if new.leaves else 1] += 1
        self._example("may_leave_now" if new.leaves else "must_stay_now", name)

    def _latency(self) -> Latency:
        old, new = self._times
        return Latency(
            len(old),
            Pair(_ms(old.quantile(0.5)), _ms(new.quantile(0.5))),
            Pair(_ms(old.quantile(0.95)), _ms(new.quantile(0.95))),
        )

    def _quality(self) -> Quality:
        share = Pair(None, None)
        if self._judged:
            share = Pair(_share(self._right[0], self._judged), _share(self._right[1], self._judged))
        return Quality(self._judged, share, self._estimated, self._least, self._unknown, self._unknown_moved)


_SURE = StepOutcome("local", "local")


def _answered(outcome: Outcome) -> dict[str, str]:
    return {name: step.answered for name, step in outcome.steps.items()}


def _share(part: float, whole: int) -> float:
    return round(part / whole, 6) if whole else 0.0


def _rounded(pair: Sequence[float | None]) -> Pair:
    old, new = (None if value is None else round(value, 6) for value in pair)
    return Pair(old, new)


def _ms(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
