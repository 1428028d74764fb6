"""The score: where among the allowed sides a step runs best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from schemas.messages import Factor, Side
from schemas.rules import Weights
from streams.router.constraints import Case

Prior = dict[str, float]

PRIORS: dict[Side, Prior] = {
    "local": {"latency": 0.1, "cost": 0.9, "privacy": 1.0},
    "cloud": {"latency": 0.8, "cost": 0.2, "privacy": 0.2},
}
"""Factors where nothing is measured. With the weights 0.4, 0.3, 0.3 they give local 0.61 and cloud 0.44."""

DEFAULT_WEIGHTS = Weights()


class Scored(NamedTuple):
    """The winner, and by side the scores and factors, all in [0, 1]."""

    side: Side
    scores: dict[str, float]
    factors: dict[str, dict[str, Factor]]


def score(case: Case, sides: Sequence[Side], max_cost: float | None = None) -> Scored:
    """The best of `sides` (at least one): the weighted mean of three factors, 1 being best; local wins a tie.

    latency: 1 - predicted / left, clipped. cost: 1 - price / `max_cost`, or without one, against the
    dearest of `sides`. privacy: 1 at home, 0.2 in the cloud. A factor is live only where it is known of
    every side compared: an unmeasured side would else lose to a measured one for ever, and so never be
    measured.
    """
    weights = case.task.weights or DEFAULT_WEIGHTS
    total = weights.latency + weights.cost + weights.privacy
    shares = (weights.latency / total, weights.cost / total, weights.privacy / total)
    latency = _latency(case, sides)
    cost = _cost(case, sides, max_cost)
    scores: dict[str, float] = {}
    factors: dict[str, dict[str, Factor]] = {}
    for side in sides:
        found = {
            "latency": _factor(side, "latency", latency, shares[0]),
            "cost": _factor(side, "cost", cost, shares[1]),
            "privacy": _factor(side, "privacy", None, shares[2]),
        }
        factors[side] = found
        scores[side] = min(1.0, round(sum(factor.value * factor.weight for factor in found.values()), 6))
    best = max(sides, key=lambda side: (scores[side], side == "local"))
    return Scored(best, scores, factors)


def _factor(side: Side, name: str, live: dict[Side, float] | None, weight: float) -> Factor:
    if live is None:
        return Factor(value=PRIORS[side][name], weight=weight)
    return Factor(value=live[side], weight=weight, source="live")


def _latency(case: Case, sides: Sequence[Side]) -> dict[Side, float] | None:
    values: dict[Side, float] = {}
    for side in sides:
        target = case.target(side)
        predicted = None if target is None else target.figures.predicted_ms()
        if predicted is None:
            return None
        values[side] = _clip(1.0 - predicted / case.left_ms) if case.left_ms > 0 else 0.0
    return values


def _cost(case: Case, sides: Sequence[Side], max_cost: float | None) -> dict[Side, float] | None:
    prices: dict[Side, float] = {}
    for side in sides:
        target = case.target(side)
        if target is None:
            return None
        prices[side] = max(0.0, target.figures.cost_per_call or target.figures.max_cost or 0.0)
    dearest = max(prices.values())
    if dearest <= 0.0:
        # Nobody names a price: that it is free everywhere would be news, and says nothing between the sides.
        return None
    most = dearest if max_cost is None else max_cost
    if most <= 0.0:
        return {side: 0.0 if price > 0.0 else 1.0 for side, price in prices.items()}
    return {side: _clip(1.0 - price / most) for side, price in prices.items()}


def _clip(value: float) -> float:
    return min(1.0, max(0.0, round(value, 4)))
