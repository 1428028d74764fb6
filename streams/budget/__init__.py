"""The budget: ceilings of a day that hold whatever fails. One ledger for all roles."""

from __future__ import annotations

from streams.budget.closed import ClosedBudget
from streams.budget.errors import LedgerMissing
from streams.budget.memory import MemoryBudget
from streams.budget.ports import GRACE_MS, Balance, Begin, Budget, Paid, Reservation, Spend
from streams.budget.redis import RedisBudget

__all__ = [
    "GRACE_MS",
    "Balance",
    "Begin",
    "Budget",
    "ClosedBudget",
    "LedgerMissing",
    "MemoryBudget",
    "Paid",
    "RedisBudget",
    "Reservation",
    "Spend",
]
