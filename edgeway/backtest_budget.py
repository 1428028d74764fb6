"""What a day's ceilings would have let through, by plain sums in order of time."""

from __future__ import annotations

from schemas.rules import Rules

DAY_MS = 86_400_000
_ALL = ""


class Ceilings:
    """The budgets of one rule set. A call holds its bound until it is charged what it is expected to cost."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._spent: dict[tuple[int, str], float] = {}

    def fits(self, at: int, tenant: str | None, bound: float) -> bool:
        """Whether `bound` is left of every ceiling of the day of `at` (ms, UTC)."""
        if bound <= 0:
            return True
        return all(
            self._spent.get((at // DAY_MS, name), 0.0) + bound <= limit
            for name, limit in self._limits(tenant)
        )

    def charge(self, at: int, tenant: str | None, cost: float) -> None:
        """Count what a request cost."""
        if cost <= 0:
            return
        for name, _ in self._limits(tenant):
            key = (at // DAY_MS, name)
            self._spent[key] = self._spent.get(key, 0.0) + cost

    def most_spent(self) -> float | None:
        """The dearest day of all tenants together; None where no ceiling holds for all."""
        if self._rules.budget is None or self._rules.budget.per_day is None:
            return None
        return max((spent for (_, name), spent in self._spent.items() if name == _ALL), default=0.0)

    def _limits(self, tenant: str | None) -> list[tuple[str, float]]:
        budget = self._rules.budget
        if budget is None:
            return []
        found = [] if budget.per_day is None else [(_ALL, budget.per_day)]
        own = self._rules.tenants.get(tenant) if tenant is not None else None
        limit = own.per_day if own is not None and own.per_day is not None else budget.per_tenant
        if tenant is not None and limit is not None:
            found.append((tenant, limit))
        return found
