"""`edgeway budget [show|open]`: what was spent today; a new ledger where the old one is gone."""

from __future__ import annotations

import argparse
import asyncio
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from edgeway import logs
from edgeway.cli.arguments import Subparsers, command, read_settings
from edgeway.cli.output import out, out_json, say
from edgeway.errors import EdgewayError, Exit, UsageError

if TYPE_CHECKING:
    from schemas.rules import Rules
    from streams.budget import Balance, RedisBudget, Spend

_TIMEOUT_S = 3.0
_NO_TENANT = "(none)"
_MISSING = (
    "there is no ledger of the budget: nobody knows what was spent today, and roles that knew one keep the "
    "cloud closed.\nFind out why (a flush, a restart without appendonly, eviction), then begin one in which "
    "nothing is spent:\n  edgeway budget open"
)


def add(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = command(subparsers, "budget", "what was spent today, by tenant; or open a new ledger")
    parser.usage = "%(prog)s [show|open] [flags]"
    parser.add_argument(
        "verb",
        nargs="?",
        choices=("show", "open"),
        default="show",
        help="show the balances (the default), or begin a ledger with nothing spent where there is none",
    )
    parser.add_argument("--json", action="store_true", help="the balances as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """0 where there is a ledger, 1 where not."""
    settings = read_settings(args)
    logs.configure(settings, quiet_client=True)
    if settings.redis is None:
        raise UsageError(
            "name the Redis of the roles with --redis or EDGEWAY_REDIS; the budget of an `edgeway up` "
            "without one lives in its process, and shows in its /metrics"
        )
    from edgeway.rules_of import rules_of

    rules = rules_of(settings)
    spend = asyncio.run(_balances(settings.redis, rules, opening=args.verb == "open"))
    currency = "" if rules.budget is None else rules.budget.currency
    if args.json:
        out_json(_said(spend, currency))
    else:
        _show(spend, currency)
    return Exit.OK


async def _balances(url: str, rules: Rules, *, opening: bool) -> Spend:
    from streams.budget import LedgerMissing, RedisBudget
    from streams.stores import RedisLink, StoreUnavailable

    link = RedisLink(url, timeout_s=_TIMEOUT_S)
    budget = RedisBudget(link, rules.budget, rules.tenants, opens=False)
    now = int(time.time() * 1000)
    try:
        if opening:
            await _open(budget, link.address, now)
        return await budget.spend(now)
    except LedgerMissing as error:
        raise EdgewayError(_MISSING) from error
    except StoreUnavailable as error:
        raise EdgewayError(f"{error}; see that {link.address} is the Redis of the roles, and runs") from error
    finally:
        await budget.close()


async def _open(budget: RedisBudget, address: str, now: int) -> None:
    if await budget.open(now):
        say(f"a ledger with nothing spent was opened on {address}")
    else:
        say(f"there is a ledger on {address} already; it was left as it is")


def _said(spend: Spend, currency: str) -> dict[str, Any]:
    return {
        "window": _day(spend).isoformat(),
        "currency": currency,
        "all": _balance(spend.total),
        "tenants": {tenant: _balance(balance) for tenant, balance in spend.tenants.items()},
    }


def _balance(balance: Balance) -> dict[str, float | None]:
    left = None if balance.left is None else round(balance.left, 6)
    return {**balance._asdict(), "left": left}


def _day(spend: Spend) -> datetime:
    return datetime.fromtimestamp(spend.window / 1000, UTC)


def _show(spend: Spend, currency: str) -> None:
    rows: list[tuple[str, ...]] = [("tenant", "limit", "spent", "reserved", "left")]
    named = ((tenant or _NO_TENANT, balance) for tenant, balance in spend.tenants.items())
    for tenant, balance in (("all", spend.total), *named):
        amounts = (balance.limit, balance.spent, balance.reserved, balance.left)
        rows.append((tenant, *map(_amount, amounts)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    out(f"{_day(spend):%Y-%m-%d} UTC{currency and ', in ' + currency}")
    for tenant, *rest in rows:
        cells = (cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))
        out(f"{tenant.ljust(widths[0])}  {'  '.join(cells)}")


def _amount(amount: float | None) -> str:
    return "-" if amount is None else f"{amount:.6f}"
