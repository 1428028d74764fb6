"""What recorded traffic tells of each target: how long it took, what it cost, how often it was right."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable
from typing import NamedTuple

from edgeway.recorded import Attempted, Recorded, right_of
from schemas.messages import Result, Side
from streams.registry import Figures, View

Target = tuple[Side, str]
"""(side, capability)."""
Sides = tuple[tuple[str, Side], ...]
"""Who answered each step, sorted by step: what feedback on a whole answer speaks of."""
CapabilityOf = Callable[[str | None, str], str]
"""The capability of a task's step."""

BUCKETS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Upper bounds of the buckets of a local confidence; the last goes up to 1."""


class Estimate(NamedTuple):
    """A share of right answers and of how many it is the mean; `own`: of this very request's answer."""

    share: float
    samples: int
    own: bool = False


class Times:
    """Durations in ms of one target."""

    def __init__(self) -> None:
        self._values = array("d")
        self._ordered = True

    def __len__(self) -> int:
        return len(self._values)

    def add(self, value: float) -> None:
        """One more."""
        self._values.append(value)
        self._ordered = False

    def quantile(self, share: float) -> float | None:
        """The smallest value that at least `share` of them do not exceed (nearest rank); None of none."""
        if not self._values:
            return None
        if not self._ordered:
            self._values = array("d", sorted(self._values))
            self._ordered = True
        return self._values[max(0, math.ceil(share * len(self._values)) - 1)]


class Evidence:
    """Built by `learn`, once for each record. Cached answers tell nothing of the targets and are left out."""

    def __init__(self, capability_of: CapabilityOf, view: View | None = None) -> None:
        self._capability_of = capability_of
        self._view = view or View()
        self._times: dict[Target, Times] = {}
        self._costs: dict[Target, tuple[float, int]] = {}
        self._right: dict[tuple[str | None, Sides, int | None], tuple[float, int]] = {}

    def learn(self, recorded: Recorded) -> None:
        """Take in one record."""
        result = recorded.result
        if result is None or result.cached:
            return
        for seen in carried_out(recorded):
            target = (seen.side, self._capability_of(result.task, seen.step))
            if not seen.failed:
                self._times.setdefault(target, Times()).add(seen.took_ms)
            total, count = self._costs.get(target, (0.0, 0))
            if knows_costs(recorded):
                self._costs[target] = (total + seen.cost, count + 1)
        right = right_of(recorded.feedback)
        if right is not None and result.status != "error":
            sides = sides_of(result)
            bucket = bucket_of(confidence_at_home(recorded))
            for name in {bucket, None}:
                key = (result.task, sides, name)
                total, count = self._right.get(key, (0.0, 0))
                self._right[key] = (total + right, count + 1)

    def took_ms(self, target: Target, share: float) -> float | None:
        """The quantile of a target's times: as recorded, else from the registry's figures."""
        times = self._times.get(target)
        if times:
            return times.quantile(share)
        known = self._view.at(*target)
        return None if known is None else _from_figures(known.figures, share)

    def cost(self, target: Target) -> float | None:
        """The mean of what calls of a target cost, None where none is recorded."""
        total, count = self._costs.get(target, (0.0, 0))
        return total / count if count else None

    def right(self, task: str | None, sides: Sides, bucket: int | None) -> Estimate | None:
        """How often answers of these sides were right, in this bucket of the edge's confidence (or in all).

        None: nothing tells. Answers of other buckets would not do: the cloud is asked what is hard, and the
        edge is right on what is easy.
        """
        total, count = self._right.get((task, sides, bucket), (0.0, 0))
        return Estimate(total / count, count) if count else None

    def judged(self) -> list[tuple[str | None, Sides, int | None, Estimate]]:
        """All that feedback says, by task, sides and bucket, each overall figure before its buckets."""
        found = [
            (task, sides, bucket, Estimate(total / count, count))
            for (task, sides, bucket), (total, count) in self._right.items()
        ]
        return sorted(found, key=lambda row: (row[0] or "", row[1], -1 if row[2] is None else row[2]))

    def targets(self) -> list[tuple[Target, Times]]:
        """Every target with recorded times, sorted."""
        return sorted(self._times.items(), key=lambda entry: entry[0])


def carried_out(recorded: Recorded) -> tuple[Attempted, ...]:
    """The attempts of a record: its own, else the answering one of each step as its result tells of it."""
    result = recorded.result
    if recorded.attempts or result is None:
        return recorded.attempts
    single = len(result.sides) == 1 and not result.missing
    return tuple(
        Attempted(
            step,
            side,
            result.confidence if single else None,
            result.cost if single else 0.0,
            result.timings[step].queue_ms,
            result.timings[step].service_ms,
        )
        for step, side in result.sides.items()
        if step in result.timings
    )


def knows_costs(recorded: Recorded) -> bool:
    """Whether the costs of a record are known by attempt: it has them, or there was one step only."""
    result = recorded.result
    return bool(recorded.attempts) or (result is not None and len(result.sides) == 1 and not result.missing)


def confidence_at_home(recorded: Recorded, step: str | None = None) -> float | None:
    """How sure the edge was of `step`, or of the only one; None where nothing tells."""
    found = [
        seen.confidence
        for seen in carried_out(recorded)
        if seen.side == "local" and seen.confidence is not None and step in (None, seen.step)
    ]
    return found[0] if len(found) == 1 else None


def bucket_of(confidence: float | None) -> int | None:
    """The bucket of a confidence."""
    if confidence is None:
        return None
    return sum(confidence >= bound for bound in BUCKETS)


def bounds_of(bucket: int) -> tuple[float, float]:
    """From and below which confidence."""
    bounds = (0.0, *BUCKETS, 1.0)
    return bounds[bucket], bounds[bucket + 1]


def sides_of(result: Result) -> Sides:
    """Who answered what."""
    return tuple(sorted(result.sides.items()))


def _from_figures(figures: Figures, share: float) -> float | None:
    """Between p50 and p90 in a line, below and above as these: only the two are known."""
    middle, high = figures.p50_ms, figures.p90_ms
    if middle is None:
        return None
    if high is None or share <= 0.5:
        return middle
    return middle + (high - middle) * min(1.0, (share - 0.5) / 0.4)
