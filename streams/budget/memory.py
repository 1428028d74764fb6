"""The budget of one process that runs every role: gone with it."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence

from schemas.rules_structs import BudgetRule, TenantRule
from streams.budget import ledger
from streams.budget.figures import Figures
from streams.budget.ledger import Ask, Entry, Move, Room, Why
from streams.budget.limits import Limits
from streams.budget.money import MOST, cost_micros, units
from streams.budget.ports import Balance, Begin, Paid, Reservation, Spend

_Key = tuple[str, ...]  # (subtask,) is a holding, (subtask, nonce) a payment


class MemoryBudget:
    """A Budget in this process. Where roles run in processes of their own, each would have one: a ceiling
    needs one ledger, and so they share a RedisBudget."""

    def __init__(
        self, rule: BudgetRule | None = None, tenants: Mapping[str, TenantRule] | None = None
    ) -> None:
        self._entries: dict[_Key, Entry] = {}
        self._dues: list[tuple[int, _Key]] = []  # at least one per entry, with its due; others are stale
        self._sums: dict[tuple[int, str], list[int]] = {}  # (window, tenant) -> [reserved, spent]
        self._totals: dict[int, list[int]] = {}
        self._latest = 0
        self._figures = Figures()
        self.adopt(rule, tenants or {})

    def __len__(self) -> int:
        return len(self._entries)

    def adopt(self, rule: BudgetRule | None, tenants: Mapping[str, TenantRule]) -> None:
        self._limits = Limits.of_rules(rule, tenants)
        self._figures.adopt(self._limits)

    async def reserve(self, wanted: Sequence[Reservation], now: int) -> list[bool]:
        window = self._open(now)
        whys: list[Why] = []
        for subtask, tenant, cost, expires in wanted:
            ask = Ask(tenant or "", cost_micros(cost), expires, now, window)
            found = ledger.reserve(self._holding((subtask,)), ask, self._room(ask.tenant))
            if found.holding is not None:
                self._make((subtask,), found.holding)
            whys.append(found.why)
        return self._told(window, whys, (each.tenant or "" for each in wanted))

    async def begin(self, asks: Sequence[Begin], now: int) -> list[bool]:
        window = self._open(now)
        whys: list[Why] = []
        for subtask, nonce, tenant, cost, expires in asks:
            ask = Ask(tenant or "", cost_micros(cost), expires, now, window)
            holding = self._holding((subtask,))
            payment = self._entries.get((subtask, nonce))
            found = ledger.begin(holding, payment, ask, self._room(ask.tenant))
            if found.holding is not None and found.payment is not None:
                self._make((subtask,), Move(found.holding))
                self._make((subtask, nonce), found.payment)
            whys.append(found.why)
        return self._told(window, whys, (each.tenant or "" for each in asks))

    async def settle(self, paid: Sequence[Paid | tuple[str, str, float]], now: int) -> None:
        window = self._open(now)
        touched = set()
        for subtask, nonce, cost in paid:
            payment = self._entries.get((subtask, nonce))
            if payment is None:
                continue
            actual = cost_micros(cost)
            if actual > payment.amount and payment.state != "settled":
                self._figures.overrun(actual - payment.amount)
            move = ledger.settle(payment, actual)
            if move is not None:
                self._make((subtask, nonce), move)
            touched.add(payment.tenant)
        self._told(window, [], touched)

    async def release(self, subtasks: Sequence[str], now: int) -> None:
        window = self._open(now)
        touched = set()
        for subtask in subtasks:
            holding = self._entries.get((subtask,))
            move = None if holding is None else ledger.release(holding)
            if holding is not None and move is not None:
                self._make((subtask,), move)
                touched.add(holding.tenant)
        self._told(window, [], touched)

    async def spend(self, now: int) -> Spend:
        window = self._open(now)
        here = {tenant for at, tenant in self._sums if at == window}
        balances = {tenant: self._balance(window, tenant) for tenant in sorted(here | set(self._limits.own))}
        spend = Spend(window * ledger.WINDOW_MS, self._balance(window, None), balances)
        self._figures.show(spend.total, spend.tenants)
        return spend

    async def close(self) -> None:
        """Nothing to let go of: the ledger lives as long as the process."""

    def _open(self, now: int) -> int:
        """Today's window; what is due at `now` lapses first."""
        window = ledger.window_of(now, self._latest)
        if window > self._latest:
            self._latest = window
            self._sums = {key: sums for key, sums in self._sums.items() if key[0] >= window - 1}
            self._totals = {at: sums for at, sums in self._totals.items() if at >= window - 1}
        while self._dues and self._dues[0][0] <= now:
            due, key = heapq.heappop(self._dues)
            entry = self._entries.get(key)
            if entry is not None and entry.due == due:
                self._make(key, ledger.lapse(entry))
        return window

    def _holding(self, key: _Key) -> Entry | None:
        holding = self._entries.get(key)
        return None if holding is None or holding.window < self._latest - 1 else holding

    def _room(self, tenant: str) -> Room:
        def room(window: int) -> tuple[int, Why]:
            total = _left(self._limits.total, self._totals.get(window))
            own = _left(self._limits.of(tenant), self._sums.get((window, tenant)))
            return (total, "total") if total <= own else (own, "tenant")

        return room

    def _make(self, key: _Key, move: Move) -> None:
        old = self._entries.get(key)
        entry = move.entry
        if entry is None:
            del self._entries[key]
        else:
            self._entries[key] = entry
            if old is None or old.due != entry.due:
                heapq.heappush(self._dues, (entry.due, key))
        of = entry or old
        if of is not None and of.window >= self._latest - 1 and (move.reserved or move.spent):
            for sums in (
                self._totals.setdefault(of.window, [0, 0]),
                self._sums.setdefault((of.window, of.tenant), [0, 0]),
            ):
                sums[0] += move.reserved
                sums[1] += move.spent

    def _told(self, window: int, whys: list[Why], tenants: Iterable[str]) -> list[bool]:
        self._figures.answered(whys)
        balances = {tenant: self._balance(window, tenant) for tenant in tenants}
        self._figures.show(self._balance(window, None), balances)
        return [why == "granted" for why in whys]

    def _balance(self, window: int, tenant: str | None) -> Balance:
        limit = self._limits.total if tenant is None else self._limits.of(tenant)
        sums = self._totals.get(window) if tenant is None else self._sums.get((window, tenant))
        reserved, spent = sums or (0, 0)
        return Balance(None if limit is None else units(limit), units(spent), units(reserved))


def _left(limit: int | None, sums: list[int] | None) -> int:
    return MOST if limit is None else limit - (sums[0] + sums[1] if sums else 0)
