"""The budget of a role that has no ledger to share: nothing may be spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from schemas.rules_structs import BudgetRule, TenantRule
from streams import metrics
from streams.budget.ports import Begin, Paid, Reservation, Spend
from streams.stores.errors import StoreUnavailable

_WHY = (
    "the rules set a budget and this process has no ledger for it: name a Redis with --redis or "
    "EDGEWAY_REDIS, the same for every role"
)


class ClosedBudget:
    """A Budget that refuses everything: each role in a process of its own would count for itself alone."""

    def adopt(self, rule: BudgetRule | None, tenants: Mapping[str, TenantRule]) -> None:
        """No rule opens it."""

    async def reserve(self, wanted: Sequence[Reservation], now: int) -> list[bool]:
        return self._refuse(len(wanted))

    async def begin(self, asks: Sequence[Begin], now: int) -> list[bool]:
        return self._refuse(len(asks))

    async def settle(self, paid: Sequence[Paid | tuple[str, str, float]], now: int) -> None:
        raise StoreUnavailable(_WHY)

    async def release(self, subtasks: Sequence[str], now: int) -> None:
        raise StoreUnavailable(_WHY)

    async def spend(self, now: int) -> Spend:
        raise StoreUnavailable(_WHY)

    async def close(self) -> None:
        """Nothing to let go of."""

    def _refuse(self, asked: int) -> list[bool]:
        metrics.BUDGET_REFUSALS.labels("store").inc(asked)
        raise StoreUnavailable(_WHY)
