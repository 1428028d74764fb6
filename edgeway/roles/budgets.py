"""The budget of one process: what its roles reserve, begin, settle and release with."""

from __future__ import annotations

import logging
from collections.abc import Callable

from edgeway.errors import UsageError
from edgeway.roles.process import Process
from schemas.rules import Rules
from streams import metrics
from streams.budget import Budget, ClosedBudget, MemoryBudget, RedisBudget
from streams.settings import Settings
from streams.stores import RedisLink, StoreUnavailable, shared_link

log = logging.getLogger(__name__)

ALL_ROLES = "up"
"""The process whose roles share a memory."""
LOOK_S = 5.0
"""So often a process looks at the balances: what ran out is freed and shown without any request."""


def budget_for(process: Process) -> Budget | None:
    """The one budget of `process`, None where its rules set no ceiling. It follows the rules.

    On Redis where one is given, in memory in `edgeway up`, else closed: a role alone would count for itself.
    """
    if "budget" not in process.shared:
        made = _added(process) if has_ceiling(process.rules) else None
        process.shared["budget"] = made
        # Of a shared ledger nobody knows yet; what needs no answer is not down.
        metrics.BUDGET_STORE_UP.set(made is None or isinstance(made, MemoryBudget))
        process.on_rules.append(lambda rules: _adoption(process, rules))
    found: Budget | None = process.shared["budget"]
    return found


def has_ceiling(rules: Rules) -> bool:
    """Whether any ceiling is set."""
    return rules.budget is not None or any(tenant.per_day is not None for tenant in rules.tenants.values())


def _added(process: Process) -> Budget:
    budget = _made(process.name, process.settings, process.rules)
    if isinstance(budget, ClosedBudget):
        return budget

    async def look() -> None:
        try:
            await budget.spend(process.clock.now())
        except StoreUnavailable as error:
            # The link and the budget themselves tell of it, once.
            log.debug("the balances cannot be read (%s)", error)

    async def start() -> None:
        if process.settings.redis is not None:
            await _warn_of_forgetting(process.settings.redis)
        await look()
        # By now every role has named what it ends with, and they settle to the end.
        process.after.append(budget.close)

    process.before.append(start)
    process.host.every(LOOK_S, "balances", look)
    return budget


def _made(name: str, settings: Settings, rules: Rules) -> Budget:
    if settings.redis is not None:
        link = shared_link(settings.redis)
        return RedisBudget(link, rules.budget, rules.tenants, opens=settings.ledger == "auto")
    if name == ALL_ROLES:
        return MemoryBudget(rules.budget, rules.tenants)
    log.error(
        "the rules set a budget, and %s has no ledger to share with the other roles: nothing that may cost "
        "anything will run. Name a Redis with --redis or EDGEWAY_REDIS, the same for every role",
        name,
    )
    return ClosedBudget()


def _adoption(process: Process, rules: Rules) -> Callable[[], None]:
    budget: Budget | None = process.shared["budget"]
    if budget is None:
        if has_ceiling(rules):
            raise UsageError("a budget where there was none begins with a restart of the roles; restart them")
        return lambda: None
    return lambda: budget.adopt(rules.budget, rules.tenants)


async def _warn_of_forgetting(url: str) -> None:
    """Log how the Redis may lose the ledger, as far as it says."""
    link = shared_link(url)
    try:
        for line in await forgetting(link):
            log.warning("the budget's Redis at %s %s", link.address, line)
    except StoreUnavailable as error:
        log.debug("how the Redis keeps its data is not known (%s)", error)
    finally:
        await link.close()


async def forgetting(link: RedisLink) -> list[str]:
    """How a Redis may forget what was spent, one line each.

    Raises:
        StoreUnavailable: it does not say.
    """
    said: dict[str, object] = await link.call("INFO")
    lines = []
    if str(said.get("aof_enabled", "1")) == "0":
        lines.append(
            "keeps no append-only file: a restart forgets what was spent, and the cloud stays closed then. "
            "Set appendonly yes and, for an exact ceiling, appendfsync always"
        )
    policy = said.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        lines.append(
            f"may evict the ledger when its memory is full (maxmemory-policy {policy}): set noeviction, or "
            "give the budget a Redis of its own"
        )
    return lines
