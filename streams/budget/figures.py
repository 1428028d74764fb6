"""What a budget shows of itself: gauges for the tenants that the rules name, and counts of refusals."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from streams import metrics
from streams.budget.ledger import Why
from streams.budget.limits import Limits
from streams.budget.money import units
from streams.budget.ports import Balance

log = logging.getLogger(__name__)

ALL = "all"
OTHER = "other"
TAKEN = frozenset((ALL, OTHER))
"""Tenants that are called so are shown as `tenant:all`: theirs would stand where the sums are looked for."""
_NOTHING = Balance(None, 0.0, 0.0)


class Figures:
    """The metrics of one budget. Labels are bounded: tenants that the rules do not name are `other`."""

    def __init__(self) -> None:
        self._named: dict[str, Balance] = {}
        self._limits = Limits()

    def adopt(self, limits: Limits) -> None:
        """Show these tenants from now on."""
        for tenant in set(self._named) - set(limits.own):
            for gauge in (metrics.BUDGET_SPENT, metrics.BUDGET_RESERVED, metrics.BUDGET_LIMIT):
                gauge.remove(_label(tenant))
        self._named = {tenant: self._named.get(tenant, _NOTHING) for tenant in limits.own}
        self._limits = limits
        _show_limit(ALL, limits.total)
        for tenant in limits.own:
            _show_limit(_label(tenant), limits.of(tenant))

    def show(self, total: Balance, tenants: Mapping[str, Balance]) -> None:
        """The balances as the last call found them."""
        _show(ALL, total)
        for tenant, balance in tenants.items():
            if tenant in self._named:
                self._named[tenant] = balance
                _show(_label(tenant), balance)
        named = self._named.values()
        spent = max(0.0, total.spent - sum(each.spent for each in named))
        reserved = max(0.0, total.reserved - sum(each.reserved for each in named))
        _show(OTHER, Balance(None, spent, reserved))

    def answered(self, whys: Iterable[Why]) -> None:
        """Count the refusals among the answers."""
        for why in whys:
            if why != "granted":
                metrics.BUDGET_REFUSALS.labels(why).inc()

    def overrun(self, micros: int) -> None:
        """A payment cost more than was set aside for it."""
        metrics.BUDGET_OVERRUN.inc(units(micros))
        log.error(
            "a payment cost %g more than its bound: the ceiling may be exceeded by that much; raise the "
            "price's max_cost or max_tokens in the rules",
            units(micros),
        )


def _label(tenant: str) -> str:
    return f"tenant:{tenant}" if tenant in TAKEN else tenant


def _show(label: str, balance: Balance) -> None:
    metrics.BUDGET_SPENT.labels(label).set(balance.spent)
    metrics.BUDGET_RESERVED.labels(label).set(balance.reserved)


def _show_limit(label: str, limit: int | None) -> None:
    metrics.BUDGET_LIMIT.labels(label).set(float("inf") if limit is None else units(limit))
