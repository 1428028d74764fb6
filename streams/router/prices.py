"""What a call of a target may cost. Prices in the rules stand over those of the cards."""

from __future__ import annotations

from typing import NamedTuple

from schemas.messages import Side
from schemas.rules import Rules
from streams.registry.figures import Target

_MAX_KEPT = 4096
_DUST = 1e-10


class Option(NamedTuple):
    """A target that a step may run on. `price` is what a call is expected to cost, None where nobody knows;
    `bound` the most that it may, None where nobody knows."""

    side: Side
    capability: str = ""
    target: Target | None = None
    price: float | None = 0.0
    bound: float | None = 0.0


def fits(bound: float, left: float) -> bool:
    """Whether a call of at most `bound` fits what is left. In floats 0.047 - 0.041 is less than 0.006, and
    is enough for it."""
    return bound <= left + _DUST


class Prices:
    """The prices of one version of the rules."""

    def __init__(self, rules: Rules) -> None:
        self._rules = {
            (side, capability): price
            for name, price in rules.prices.items()
            for side, _, capability in [name.partition("/")]
        }
        ceilings = [tenant.per_day for tenant in rules.tenants.values()]
        self.budgeted = rules.budget is not None or any(limit is not None for limit in ceilings)
        """Whether the rules know any ceiling."""
        self._options: dict[tuple[Side, str], Option] = {}

    def option(self, side: Side, capability: str, target: Target | None) -> Option:
        """The option that `target` is; worked out once for each look at the figures."""
        key = (side, capability)
        known = self._options.get(key)
        if known is None or known.target is not target:
            bound = self.bound(side, capability, target)
            known = Option(side, capability, target, self.expected(side, capability, target), bound)
            if len(self._options) >= _MAX_KEPT:
                self._options.clear()
            self._options[key] = known
        return known

    def bound(self, side: Side, capability: str, target: Target | None) -> float | None:
        """The most that one call costs, 0 where it is free, None where nobody knows.

        Of a target that is not alive (`scale_to_zero`) and has no price in the rules, the cloud is taken
        for paid where there is a budget, and else for free.
        """
        if self._rules:
            price = self._rules.get((side, capability))
            if price is not None:
                return price.bound
        if target is None:
            return None if self.budgeted and side == "cloud" else 0.0
        figures = target.figures
        if figures.max_cost is not None:
            return figures.max_cost
        return None if figures.cost_per_call > 0.0 or figures.cost_per_token > 0.0 else 0.0

    def expected(self, side: Side, capability: str, target: Target | None) -> float | None:
        """What one call costs as far as is known beforehand, None where nothing is."""
        if self._rules:
            price = self._rules.get((side, capability))
            if price is not None:
                return (price.bound or 0.0) if price.per_1k_tokens else price.per_call
        if target is None:
            return None
        figures = target.figures
        if figures.cost_per_token > 0.0:
            return figures.max_cost or figures.cost_per_call
        return figures.cost_per_call or figures.max_cost or 0.0
