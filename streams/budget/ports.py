"""What router, workers and aggregator ask of a budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from schemas.rules_structs import BudgetRule, TenantRule

GRACE_MS = 60_000
"""A reservation outlives its subtask's deadline by so much: what is under way at the deadline may still be
charged."""


class Reservation(NamedTuple):
    """The most that one subtask may cost, set aside before it is published; `expires` in ms."""

    subtask: str
    tenant: str | None
    cost: float
    expires: int


class Begin(NamedTuple):
    """One payment that is about to be made. `nonce` is new for every execution: a redelivered subtask pays
    again, and so does its second execution."""

    subtask: str
    nonce: str
    tenant: str | None
    cost: float
    expires: int


class Paid(NamedTuple):
    """What the payment (`subtask`, `nonce`) cost in the end."""

    subtask: str
    nonce: str
    cost: float


class Balance(NamedTuple):
    """Money of one window, in the rules' currency. No `limit`: none is set."""

    limit: float | None
    spent: float
    reserved: float

    @property
    def left(self) -> float | None:
        """What can still be reserved, None without a limit."""
        return None if self.limit is None else max(0.0, self.limit - self.spent - self.reserved)


class Spend(NamedTuple):
    """The balances of the day (UTC) that begins at `window` (ms): of all tenants together, and of each that
    has a limit of its own or spent anything. Requests without a tenant stand under ""."""

    window: int
    total: Balance
    tenants: dict[str, Balance]


class Budget(Protocol):
    """Ceilings of a day, of all tenants together and of each tenant.

    At every instant `reserved + spent <= limit`, as long as no payment costs more than was set aside for it.
    A reservation belongs to the day (UTC) of the `now` (ms) at which it was made, and is settled there. What
    was reserved and not begun by `expires` is free again; what was begun and not settled by then counts as
    spent. Every call is one round trip, may be repeated, and raises StoreUnavailable where the store is away:
    whether it was done is then unknown.
    """

    def adopt(self, rule: BudgetRule | None, tenants: Mapping[str, TenantRule]) -> None:
        """The ceilings that hold from the next call on."""

    async def reserve(self, wanted: Sequence[Reservation], now: int) -> list[bool]:
        """Set costs aside, in order; False where a ceiling does not allow it.

        A subtask that is known already has nothing set aside twice; where it now costs more, the difference.
        """
        ...

    async def begin(self, asks: Sequence[Begin], now: int) -> list[bool]:
        """Before paying: turns a reservation into a payment under way; False where nothing may be paid.

        Another nonce of the same subtask, or a subtask that is not known, reserves anew. Refused are released
        subtasks, those past `expires`, payments that are settled already, and what no ceiling has room for.
        """
        ...

    async def settle(self, paid: Sequence[Paid | tuple[str, str, float]], now: int) -> None:
        """After paying: the actual cost takes the place of what was set aside. Of several for one payment the
        lowest counts; one that comes after `expires` takes back what was too much. More than was set aside is
        recorded all the same, and told by the log and a metric."""

    async def release(self, subtasks: Sequence[str], now: int) -> None:
        """Free what was reserved for `subtasks` and not begun; a later `begin` of theirs is refused."""

    async def spend(self, now: int) -> Spend:
        """The balances of today."""
        ...

    async def close(self) -> None:
        """Let go of connections. Harmless when repeated."""
