"""The score: where among the allowed targets a step runs best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from schemas.messages import Factor, Side
from schemas.rules import Weights
from streams.registry.figures import Target

Prior = dict[str, float]

PRIORS: dict[Side, Prior] = {
    "local": {"latency": 0.1, "cost": 0.9, "privacy": 1.0},
    "cloud": {"latency": 0.8, "cost": 0.2, "privacy": 0.2},
}
"""Factors where nothing is measured. With the weights 0.4, 0.3, 0.3 they give local 0.61 and cloud 0.44."""

DEFAULT_WEIGHTS = Weights()


class Option(NamedTuple):
    """A target that a step may run on. `price` is what a call is expected to cost, None where nobody knows;
    `bound` the most that it may."""

    side: Side
    capability: str = ""
    target: Target | None = None
    price: float | None = 0.0
    bound: float = 0.0


class Scored(NamedTuple):
    """The index of the winner, and for each option its score and factors, all in [0, 1]."""

    best: int
    scores: list[float]
    factors: list[dict[str, Factor]]


def score(
    options: Sequence[Option], left_ms: int, weights: Weights | None = None, most: float | None = None
) -> Scored:
    """The best of `options` (at least one): the weighted mean of three factors, 1 being best; the first wins
    a tie.

    latency: 1 - predicted / `left_ms`, clipped. cost: 1 - price / `most`, which is what is left to spend, or
    where nobody says that, against the dearest of the options. privacy: 1 at home, 0.2 in the cloud. A
    factor is live only where it is known of every option: an unmeasured one would else lose to a measured
    one for ever, and so never be measured.
    """
    weights = weights or DEFAULT_WEIGHTS
    total = weights.latency + weights.cost + weights.privacy
    by_latency, by_cost, by_privacy = weights.latency / total, weights.cost / total, weights.privacy / total
    latency, cost = _latency(options, left_ms), _cost(options, most)
    scores: list[float] = []
    factors: list[dict[str, Factor]] = []
    for index, option in enumerate(options):
        prior = PRIORS[option.side]
        found = {
            "latency": _factor(prior["latency"], latency, index, by_latency),
            "cost": _factor(prior["cost"], cost, index, by_cost),
            "privacy": Factor(value=prior["privacy"], weight=by_privacy),
        }
        factors.append(found)
        scores.append(min(1.0, round(sum([factor.value * factor.weight for factor in found.values()]), 6)))
    return Scored(scores.index(max(scores)), scores, factors)


def _factor(prior: float, live: list[float] | None, index: int, weight: float) -> Factor:
    if live is None:
        return Factor(value=prior, weight=weight)
    return Factor(value=live[index], weight=weight, source="live")


def _latency(options: Sequence[Option], left_ms: int) -> list[float] | None:
    values: list[float] = []
    for option in options:
        predicted = None if option.target is None else option.target.predicted_ms
        if predicted is None:
            return None
        values.append(_clip(1.0 - predicted / left_ms) if left_ms > 0 else 0.0)
    return values


def _cost(options: Sequence[Option], most: float | None) -> list[float] | None:
    prices = [option.price for option in options]
    known = [price for price in prices if price is not None]
    if len(known) < len(prices):
        return None
    dearest = max(known)
    if dearest <= 0.0:
        # Nobody names a price: that it is free everywhere would be news, and says nothing between options.
        return None
    most = dearest if most is None else most
    if most <= 0.0:
        return [0.0 if price > 0.0 else 1.0 for price in known]
    return [_clip(1.0 - price / most) for price in known]


def _clip(value: float) -> float:
    return min(1.0, max(0.0, round(value, 4)))
