"""The ceilings of these runs."""

from __future__ import annotations

from schemas.rules_structs import BudgetRule, TenantRule

TENANTS = (None, "a", "b", "c")
RULE = BudgetRule(per_day=0.1, per_tenant=0.04)
OWN = {"a": TenantRule(per_day=0.015)}
