"""Live figures of a capability on one side, over all its workers, and the view that the router plans by."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from schemas.cards import Offer
from schemas.messages import Side

Gate = Literal["closed", "half_open", "slow", "failing", "away"]
"""A breaker as seen from outside: `closed` lets all through, `half_open` a few, `slow`, `failing` and `away`
none."""

Key = tuple[Side, str]
"""(side, capability)."""


class Figures(msgspec.Struct, frozen=True):
    """One capability on one side.

    `queue` counts what waits and what runs, over all workers. Times are ms and, with `error_ratio`, means
    weighted by the calls served. Of the cards the cautious reading counts: `calibrated` and `cacheable` where
    all are, the highest price and cost bound (`max_cost` None: no bound known), the smallest `max_batch`, an
    `input_schema` that fits all. `max_qps` is that of all workers together, None where one has no limit;
    `versions` are those of the cards, sorted. Workers whose model hangs count in nothing but `hung` and the
    cards, unless all do: then `stands` is True. So it is with workers whose service elsewhere is `away`, and
    `gone` where that holds for all.
    """

    workers: int
    queue: int = 0
    p50_ms: float | None = None
    p90_ms: float | None = None
    error_ratio: float = 0.0
    served: int = 0
    calibrated: bool = False
    cost_per_call: float = 0.0
    max_cost: float | None = None
    max_batch: int = 1
    cost_per_token: float = 0.0
    max_qps: float | None = None
    input_schema: dict[str, Any] = {}
    versions: tuple[str, ...] = ()
    cacheable: bool = False
    hung: int = 0
    stands: bool = False
    away: int = 0
    gone: bool = False

    def wait_ms(self) -> float | None:
        """Time until a call sent now would start, None where nothing is measured.

        Every worker answers `max_batch` calls per `p50_ms`: ceil(queue / (workers * max_batch)) rounds.
        """
        if self.p50_ms is None:
            return None
        return math.ceil(self.queue / (self.workers * self.max_batch)) * self.p50_ms

    def predicted_ms(self) -> float | None:
        """Queue and service time of a call sent now, None where nothing is measured."""
        wait = self.wait_ms()
        return None if wait is None or self.p50_ms is None else wait + self.p50_ms


class Target(msgspec.Struct, frozen=True):
    """A capability on one side as the router may use it; `throttled` where it has had its `max_qps` for
    now. `wait_ms` and `predicted_ms` are those of the figures, worked out once."""

    figures: Figures
    gate: Gate = "closed"
    throttled: bool = False
    wait_ms: float | None = None
    predicted_ms: float | None = None

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "wait_ms", self.figures.wait_ms())
        msgspec.structs.force_setattr(self, "predicted_ms", self.figures.predicted_ms())


class View(msgspec.Struct, frozen=True):
    """A snapshot: what is not in `targets` is not alive. `counted` are the targets whose calls the registry
    must be told of (`Registry.admit`): half open, or with a `max_qps`."""

    targets: Mapping[Key, Target] = {}
    counted: frozenset[Key] = frozenset()

    def at(self, side: Side, capability: str) -> Target | None:
        return self.targets.get((side, capability))


def aggregate(offers: Iterable[Offer], hung: Iterable[Offer] = (), away: Iterable[Offer] = ()) -> Figures:
    """The figures of the workers that make these offers, of those whose model hangs, and of those whose
    service is away; at least one."""
    going, hung, away = tuple(offers), tuple(hung), tuple(away)
    lives = [offer.live for offer in going or hung or away]
    cards = [offer.card for offer in (*going, *hung, *away)]
    weights = [max(1, live.served) for live in lives]
    bounds = [card.max_cost for card in cards]
    known = [bound for bound in bounds if bound is not None]
    return Figures(
        workers=len(lives),
        queue=sum(max(0, live.queue) + max(0, live.in_flight) for live in lives),
        p50_ms=_mean([live.p50_ms for live in lives], weights),
        p90_ms=_mean([live.p90_ms for live in lives], weights),
        error_ratio=_mean([live.error_ratio for live in lives], weights) or 0.0,
        served=sum(live.served for live in lives),
        calibrated=all(card.calibrated for card in cards),
        cost_per_call=max(card.cost_per_call for card in cards),
        max_cost=max(known) if len(known) == len(bounds) else None,
        max_batch=max(1, min(card.max_batch for card in cards)),
        cost_per_token=max(card.cost_per_token for card in cards),
        max_qps=_sum([card.max_qps for card in cards]),
        input_schema=_schema([card.input_schema for card in cards]),
        versions=tuple(sorted({card.version for card in cards})),
        cacheable=all(card.cacheable for card in cards),
        hung=len(hung),
        stands=not going and bool(hung),
        away=len(away),
        gone=not going and not hung,
    )


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _schema(schemas: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One schema that holds where all do: while versions change, any worker may get the call."""
    first = schemas[0]
    differing = [first, *(schema for schema in schemas[1:] if schema != first)]
    return first if len(differing) == 1 else {"allOf": differing}


def _mean(values: list[float | None], weights: list[int]) -> float | None:
    """The weighted mean of the values that are there, None where none is."""
    pairs = [(value, weight) for value, weight in zip(values, weights, strict=True) if value is not None]
    if not pairs:
        return None
    return sum(value * weight for value, weight in pairs) / sum(weight for _, weight in pairs)
