"""Prices, ceilings and tenants."""

from __future__ import annotations

import re

from schemas.bounds import TENANT, TENANT_WORDS
from schemas.messages import Side
from schemas.rules_structs import RulesFile
from schemas.rules_text import RulesText, near


def check_prices(text: RulesText, file: RulesFile, capabilities: tuple[tuple[Side, str], ...]) -> None:
    """Raises:
    RulesError: a price of what the rules do not use, or without an upper bound.
    """
    known = [f"{side}/{capability}" for side, capability in capabilities]
    used = frozenset(known)
    for name, price in file.prices.items():
        path = ("prices", name)
        if name not in used:
            side = "" if name.startswith(("local/", "cloud/")) else "a price is by SIDE/CAPABILITY; "
            text.refuse(path, f"{side}no task of these rules uses {name!r}; {near(name, known)}")
        if price.bound is None:
            why = "a paid target without an upper bound: `per_1k_tokens` alone bounds nothing"
            text.refuse(path, f"{why}; give `max_tokens` of a call, or `max_cost`")
        if price.max_cost is not None and price.per_call > price.max_cost:
            text.refuse(path, f"`per_call` {price.per_call:g} is above `max_cost` {price.max_cost:g}")


def check_ceilings(text: RulesText, file: RulesFile) -> None:
    """Raises:
    RulesError: a ceiling of one tenant that is above that of all, or that nothing would keep.
    """
    budget = file.budget
    whole = None if budget is None else budget.per_day
    if budget is not None and whole is not None and (budget.per_tenant or 0) > whole:
        why = f"each tenant may spend {budget.per_tenant:g} a day and all together {whole:g}"
        text.refuse(("budget", "per_tenant"), f"{why}; lower it, or raise `per_day`")
    for name, tenant in file.tenants.items():
        path = ("tenants", name)
        if not re.fullmatch(TENANT, name):
            text.refuse(path, f"{name!r} is no tenant's name; give {TENANT_WORDS}")
        if tenant.per_day is None:
            continue
        if budget is None:
            why = "a ceiling, and the rules have no `budget` that would keep it"
            text.refuse((*path, "per_day"), f'{why}; write "budget": {{}} beside `tenants`, or leave it out')
        if whole is not None and tenant.per_day > whole:
            why = f"{tenant.per_day:g} a day is above the budget of all tenants, {whole:g}"
            text.refuse((*path, "per_day"), f"{why}; lower it, or raise `budget.per_day`")
