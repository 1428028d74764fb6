"""What a budget shows of itself."""

from __future__ import annotations

from prometheus_client import REGISTRY

from schemas.rules_structs import BudgetRule, TenantRule
from streams.budget import MemoryBudget, Reservation

NOW = 1_796_000_000_000
RULE = BudgetRule(per_day=1.0)


def shown(name: str, tenant: str) -> float | None:
    return REGISTRY.get_sample_value(f"edgeway_budget_{name}", {"tenant": tenant})


async def test_tenants_called_as_the_sums_are_do_not_stand_in_their_place() -> None:
    tenants = {"all": TenantRule(per_day=0.25), "other": TenantRule(per_day=0.5)}
    budget = MemoryBudget(RULE, tenants)
    wanted = [Reservation(f"r{n}/s/cloud/0", who, 0.125, NOW + 90_000) for n, who in enumerate(("all", None))]
    assert await budget.reserve(wanted, NOW) == [True, True]
    await budget.spend(NOW)
    assert (shown("limit", "all"), shown("reserved", "all")) == (1.0, 0.25)
    assert (shown("limit", "tenant:all"), shown("reserved", "tenant:all")) == (0.25, 0.125)
    assert (shown("limit", "other"), shown("reserved", "other")) == (None, 0.125)
    assert (shown("limit", "tenant:other"), shown("reserved", "tenant:other")) == (0.5, 0.0)
    budget.adopt(RULE, {})
    assert shown("limit", "tenant:all") is None
    assert shown("limit", "all") == 1.0
    await budget.close()
