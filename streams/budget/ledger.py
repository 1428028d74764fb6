"""The arithmetic of a ledger: what each event does to one entry and to the sums. No I/O, no clock.

A subtask has a *holding* (`reserved`, then `used` by a payment or `released`), and each execution of it a
*payment* (`begun`, then `settled`, or `unknown` when its time ran out). `ledger.lua` says the same on Redis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

WINDOW_MS = 86_400_000
"""A day (UTC)."""

State = Literal["reserved", "used", "released", "begun", "settled", "unknown"]
Why = Literal["granted", "total", "tenant", "released", "late", "again"]
"""How an ask was answered: `granted`, or why not: no room in the ceiling of all or of the tenant, released
before, past its time, or a payment that has ended already."""

Room = Callable[[int], tuple[int, Why]]
"""What a window has room for, in millionths, and which ceiling says so."""


class Entry(NamedTuple):
    """One holding or payment. `amount` (millionths) is what it has set aside, or what it cost; at `due` (ms)
    it lapses."""

    state: State
    tenant: str
    window: int
    amount: int
    due: int


class Ask(NamedTuple):
    """A wish to spend `cost` millionths until `expires`, made at `now` in `window`."""

    tenant: str
    cost: int
    expires: int
    now: int
    window: int


class Move(NamedTuple):
    """What becomes of an entry (None: it is gone), and what that adds to its window's sums."""

    entry: Entry | None
    reserved: int = 0
    spent: int = 0


class Reserved(NamedTuple):
    why: Why
    holding: Move | None = None


class Begun(NamedTuple):
    why: Why
    holding: Entry | None = None
    payment: Move | None = None


def window_of(now: int, latest: int) -> int:
    """The number of the day that `now` (ms) is charged to.

    `latest` is the last day that anything was charged to; the sums of those before the last but one are gone,
    so a clock that lags by days must not begin them anew.
    """
    return max(now // WINDOW_MS, latest - 1)


def kept_until(window: int) -> int:
    """When the books of a window are closed for good (ms): a day after its end."""
    return (window + 2) * WINDOW_MS


def reserve(holding: Entry | None, ask: Ask, room: Room) -> Reserved:
    """Set `ask.cost` aside for a subtask."""
    if ask.expires <= ask.now:
        return Reserved("late")
    if holding is None:
        why = _refusal(ask.cost, ask.window, room)
        return Reserved(why) if why else Reserved("granted", Move(_fresh("reserved", ask), reserved=ask.cost))
    if holding.state == "released":
        return Reserved("released")
    if holding.tenant != ask.tenant:
        return Reserved("tenant")
    more = ask.cost - holding.amount
    if holding.state == "used" or more <= 0:
        return Reserved("granted")
    why = _refusal(more, holding.window, room)
    if why:
        return Reserved(why)
    return Reserved("granted", Move(holding._replace(amount=ask.cost), reserved=more))


def begin(holding: Entry | None, payment: Entry | None, ask: Ask, room: Room) -> Begun:
    """Start a payment: from the holding, or anew where that is used already or not known."""
    if payment is not None:
        return Begun("granted" if payment.state == "begun" else "again")
    if ask.expires <= ask.now:
        return Begun("late")
    if holding is not None and holding.state == "released":
        return Begun("released")
    if holding is not None and holding.tenant != ask.tenant:
        return Begun("tenant")
    if holding is None or holding.state == "used":
        why = _refusal(ask.cost, ask.window, room)
        if why:
            return Begun(why)
        used = holding or _fresh("used", ask)._replace(amount=0)
        return Begun("granted", used, Move(_fresh("begun", ask), reserved=ask.cost))
    more = max(0, ask.cost - holding.amount)
    why = _refusal(more, holding.window, room)
    if why:
        return Begun(why)
    due = max(holding.due, _due(ask.expires, holding.window))
    paying = holding._replace(state="begun", amount=holding.amount + more, due=due)
    return Begun("granted", holding._replace(state="used", amount=0), Move(paying, reserved=more))


def settle(payment: Entry, actual: int) -> Move | None:
    """The payment cost `actual`; None where that is no news."""
    done = payment._replace(state="settled", amount=actual)
    if payment.state == "begun":
        return Move(done, reserved=-payment.amount, spent=actual)
    if payment.state == "unknown" or actual < payment.amount:
        return Move(done, spent=actual - payment.amount)
    return None


def release(holding: Entry) -> Move | None:
    """Nobody waits for this subtask any more; None where that is known."""
    if holding.state == "released":
        return None
    return Move(holding._replace(state="released", amount=0), reserved=-holding.amount)


def lapse(entry: Entry) -> Move:
    """An entry's time has run out."""
    if entry.state == "reserved":
        return Move(None, reserved=-entry.amount)
    if entry.state == "begun":
        due = kept_until(entry.window)
        return Move(entry._replace(state="unknown", due=due), reserved=-entry.amount, spent=entry.amount)
    return Move(None)


def _refusal(cost: int, window: int, room: Room) -> Why | None:
    if cost <= 0:
        return None
    left, why = room(window)
    return why if cost > left else None


def _fresh(state: State, ask: Ask) -> Entry:
    return Entry(state, ask.tenant, ask.window, ask.cost, _due(ask.expires, ask.window))


def _due(expires: int, window: int) -> int:
    return min(expires, kept_until(window))
