"""The ceilings that rules set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from schemas.rules_structs import BudgetRule, TenantRule
from streams.budget.money import limit_micros


@dataclass(frozen=True, slots=True)
class Limits:
    """Ceilings of a day in millionths; None: no ceiling. `own` holds every tenant that the rules name."""

    total: int | None = None
    each: int | None = None
    own: Mapping[str, int | None] = field(default_factory=dict)

    @staticmethod
    def of_rules(rule: BudgetRule | None, tenants: Mapping[str, TenantRule]) -> Limits:
        each = None if rule is None else _micros(rule.per_tenant)
        own = {
            name: each if tenant.per_day is None else limit_micros(tenant.per_day)
            for name, tenant in tenants.items()
        }
        return Limits(None if rule is None else _micros(rule.per_day), each, own)

    def of(self, tenant: str) -> int | None:
        """The ceiling of one tenant; "" stands for all requests without a tenant."""
        return self.own.get(tenant, self.each)


def _micros(limit: float | None) -> int | None:
    return None if limit is None else limit_micros(limit)
