"""The budget that all processes share: a ledger on Redis, one script an operation."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources
from typing import Any, cast

from schemas.rules_structs import BudgetRule, TenantRule
from streams import metrics
from streams.budget.errors import LedgerMissing
from streams.budget.figures import Figures
from streams.budget.ledger import WINDOW_MS, Why
from streams.budget.limits import Limits
from streams.budget.money import cost_micros, units
from streams.budget.ports import Balance, Begin, Paid, Reservation, Spend
from streams.stores.errors import StoreUnavailable
from streams.stores.link import RedisLink, Script, Value

log = logging.getLogger(__name__)

KEYS = ("edgeway:{budget}:ledger", "edgeway:{budget}:entries", "edgeway:{budget}:due")
"""The braces put them into one slot of a Redis cluster, as the scripts need it."""


def _script(name: str) -> Script:
    room = resources.files("streams.budget")
    return Script("".join((room / f"{part}.lua").read_text(encoding="utf-8") for part in ("ledger", name)))


RESERVE, BEGIN, SETTLE, RELEASE, SPEND = map(_script, ("reserve", "begin", "settle", "release", "spend"))


def _new_epoch() -> str:
    return secrets.token_hex(8)


class RedisBudget:
    """A Budget on Redis 6.2 or newer, or Valkey, by `link`, which it closes as one holder.

    A process that finds no ledger at its first call opens one where `opens` allows it: nothing counts as
    spent then. A process that knew a ledger and finds it gone raises LedgerMissing at every call until
    somebody has opened one again.
    """

    def __init__(
        self,
        link: RedisLink,
        rule: BudgetRule | None = None,
        tenants: Mapping[str, TenantRule] | None = None,
        *,
        opens: bool = True,
        new_epoch: Callable[[], str] = _new_epoch,
    ) -> None:
        self._link = link
        self._opens = opens
        self._new_epoch = new_epoch
        self._epoch: str | None = None
        self._missing = False
        self._closed = False
        self._figures = Figures()
        self.adopt(rule, tenants or {})

    def adopt(self, rule: BudgetRule | None, tenants: Mapping[str, TenantRule]) -> None:
        self._limits = Limits.of_rules(rule, tenants)
        self._figures.adopt(self._limits)

    async def reserve(self, wanted: Sequence[Reservation], now: int) -> list[bool]:
        if not wanted:
            return []
        args: list[Value] = []
        for subtask, tenant, cost, expires in wanted:
            args += (_holding(subtask), tenant or "", cost_micros(cost), expires, self._own(tenant))
        return self._granted(await self._asked(RESERVE, args, now, len(wanted)))

    async def begin(self, asks: Sequence[Begin], now: int) -> list[bool]:
        if not asks:
            return []
        args: list[Value] = []
        for subtask, nonce, tenant, cost, expires in asks:
            args += (_holding(subtask), _payment(subtask, nonce), tenant or "", cost_micros(cost), expires)
            args.append(self._own(tenant))
        return self._granted(await self._asked(BEGIN, args, now, len(asks)))

    async def settle(self, paid: Sequence[Paid | tuple[str, str, float]], now: int) -> None:
        args: list[Value] = []
        for subtask, nonce, cost in paid:
            args += (_payment(subtask, nonce), cost_micros(cost))
        if args:
            for over in await self._run(SETTLE, args, now):
                if over:
                    self._figures.overrun(over)

    async def release(self, subtasks: Sequence[str], now: int) -> None:
        if subtasks:
            await self._run(RELEASE, [_holding(subtask) for subtask in subtasks], now)

    async def spend(self, now: int) -> Spend:
        reply = await self._reply(SPEND, [], now)
        total, found = self._balances(reply[3])
        unspent = {tenant: self._balance(tenant, 0, 0) for tenant in self._limits.own}
        return Spend(reply[1] * WINDOW_MS, total, dict(sorted((unspent | found).items())))

    async def open(self, now: int) -> bool:
        """Open a ledger in which nothing is spent, where there is none. False where there is one."""
        epoch = self._new_epoch()
        reply = await self._link.run(SPEND, KEYS, [now, epoch, ""])
        self._epoch = reply[0].decode()
        return self._epoch == epoch

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await self._link.close()

    def _own(self, tenant: str | None) -> Value:
        limit = self._limits.of(tenant or "")
        return "" if limit is None else limit

    async def _asked(self, script: Script, args: Sequence[Value], now: int, asked: int) -> list[Why]:
        try:
            return [cast("Why", answer.decode()) for answer in await self._run(script, args, now)]
        except LedgerMissing:
            metrics.BUDGET_REFUSALS.labels("ledger").inc(asked)
            raise
        except StoreUnavailable:
            metrics.BUDGET_REFUSALS.labels("store").inc(asked)
            raise

    def _granted(self, whys: list[Why]) -> list[bool]:
        self._figures.answered(whys)
        return [why == "granted" for why in whys]

    async def _run(self, script: Script, args: Sequence[Value], now: int) -> list[Any]:
        answers: list[Any] = (await self._reply(script, args, now))[2]
        return answers

    async def _reply(self, script: Script, args: Sequence[Value], now: int) -> list[Any]:
        """The script's reply: epoch, day, answers, balances.

        Raises:
            StoreUnavailable, LedgerMissing: nothing is known of it.
        """
        offer = self._new_epoch() if self._opens and self._epoch is None else ""
        total = "" if self._limits.total is None else self._limits.total
        try:
            reply: list[Any] = await self._link.run(script, KEYS, [now, offer, total, *args])
        except StoreUnavailable:
            metrics.BUDGET_STORE_UP.set(0)
            raise
        if reply[0] is None:
            self._note_missing()
        self._note_epoch(reply[0].decode(), offer)
        metrics.BUDGET_STORE_UP.set(1)
        self._figures.show(*self._balances(reply[3]))
        return reply

    def _note_missing(self) -> None:
        metrics.BUDGET_STORE_UP.set(0)
        if not self._missing:
            self._missing = True
            log.error(
                "there is no ledger of the budget on Redis at %s, so nobody knows what was spent today: the "
                "cloud stays closed. Find out why (a flush, a restart without appendonly, eviction), then "
                "begin one with nothing spent: edgeway budget open",
                self._link.address,
            )
        raise LedgerMissing("the budget's ledger is missing: edgeway budget open begins a new one")

    def _note_epoch(self, epoch: str, offer: str) -> None:
        self._missing = False
        if epoch == self._epoch:
            return
        if epoch == offer:
            log.warning("no ledger was found, a new one begins with nothing spent (%s)", self._link.address)
        elif self._epoch is not None:
            log.warning(
                "another ledger was opened on Redis at %s: its sums hold from now on", self._link.address
            )
        self._epoch = epoch

    def _balances(self, flat: Sequence[bytes]) -> tuple[Balance, dict[str, Balance]]:
        threes: Iterable[tuple[bytes, bytes, bytes]] = zip(flat[::3], flat[1::3], flat[2::3], strict=True)
        (_, reserved, spent), *rest = threes
        total = _balance(self._limits.total, int(reserved), int(spent))
        return total, {
            tenant.decode(): self._balance(tenant.decode(), int(reserved), int(spent))
            for tenant, reserved, spent in rest
        }

    def _balance(self, tenant: str, reserved: int, spent: int) -> Balance:
        return _balance(self._limits.of(tenant), reserved, spent)


def _balance(limit: int | None, reserved: int, spent: int) -> Balance:
    return Balance(None if limit is None else units(limit), units(spent), units(reserved))


def _holding(subtask: str) -> str:
    return f"h{subtask}"


def _payment(subtask: str, nonce: str) -> str:
    return f"p{len(nonce)}:{nonce}{subtask}"
