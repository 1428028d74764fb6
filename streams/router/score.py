"""The score: where among the allowed targets a step runs best."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from schemas.messages import Factor, Side
from schemas.rules import Weights
from streams.router.prices import Option

Prior = dict[str, float]

PRIORS: dict[Side, Prior] = {
    "local": {"latency": 0.1, "cost": 0.9, "privacy": 1.0},
    "cloud": {"latency": 0.8, "cost": 0.2, "privacy": 0.2},
}
"""Factors where nothing is measured. With the weights 0.4, 0.3, 0.3 they give local 0.61 and cloud 0.44."""

DEFAULT_WEIGHTS = Weights()


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
    shares, priors = _priors(weights.latency, weights.cost, weights.privacy)
    latency, cost = _latency(options, left_ms), _cost(options, most)
    scores: list[float] = []
    factors: list[dict[str, Factor]] = []
    for index, option in enumerate(options):
        by_latency, by_cost, by_privacy = priors[option.side]
        if latency is not None:
            by_latency = Factor(value=latency[index], weight=shares[0], source="live")
        if cost is not None:
            by_cost = Factor(value=cost[index], weight=shares[1], source="live")
        factors.append({"latency": by_latency, "cost": by_cost, "privacy": by_privacy})
        total = by_latency.value * shares[0] + by_cost.value * shares[1] + by_privacy.value * shares[2]
        scores.append(min(1.0, round(total, 6)))
    return Scored(scores.index(max(scores)), scores, factors)


Shares = tuple[float, float, float]
Factors = tuple[Factor, Factor, Factor]


@lru_cache(maxsize=256)
def _priors(latency: float, cost: float, privacy: float) -> tuple[Shares, dict[Side, Factors]]:
    """The weights as shares of one, and each side's factors where nothing is measured."""
    total = latency + cost + privacy
    shares = (latency / total, cost / total, privacy / total)

    def factors(side: Side) -> Factors:
        prior = PRIORS[side]
        return (
            Factor(value=prior["latency"], weight=shares[0]),
            Factor(value=prior["cost"], weight=shares[1]),
            Factor(value=prior["privacy"], weight=shares[2]),
        )

    return shares, {"local": factors("local"), "cloud": factors("cloud")}


def _latency(options: Sequence[Option], left_ms: int) -> list[float] | None:
    values: list[float] = []
    for option in options:
        predicted = None if option.target is None else option.target.predicted_ms
        if predicted is None:
            return None
        values.append(_clip(1.0 - predicted / left_ms) if left_ms > 0 else 0.0)
    return values


def _cost(options: Sequence[Option], most: float | None) -> list[float] | None:
    known = [option.price for option in options if option.price is not None]
    if len(known) < len(options):
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
