"""Paying for subtasks: asked before a model runs, settled before its answer is published."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple, Protocol

from schemas.cards import Card
from schemas.messages import Failure, Subtask
from streams.budget import GRACE_MS, Begin, Budget, LedgerMissing, Paid
from streams.delivery import Clock
from streams.stores import StoreUnavailable
from workers.backends import Answer
from workers.work import Work

log = logging.getLogger(__name__)

PATIENCE_S = 0.5
"""A batch waits so long for the ledger, at most."""
LATER_S = 1.0
MOST_LATER = 10_000
"""Payments whose settling is tried again. Those beyond count as spent in full, as the ledger has them."""
AT_ONCE = 500

REFUSED = Failure(
    code="over_budget",
    message="the budget of today has not enough left for this call, or nobody waits for it any more: raise "
    "`budget` or the tenant's `per_day` in the rules, or wait until midnight UTC (edgeway budget shows it)",
)
AWAY = Failure(
    code="over_budget",
    message="the budget's store is away, and without it nothing is paid for: see that Redis answers",
)
MISSING = Failure(
    code="over_budget",
    message="the budget's ledger is missing, so nobody knows what was spent: find out why, then begin "
    "one with edgeway budget open",
)


class Payer(Protocol):
    """Pays for works that may cost something."""

    async def begin(self, works: Sequence[Work]) -> list[Failure | None]:
        """One answer a work: why it must not run, None where it may. Each that may gets its nonce."""
        ...

    async def settle(self, works: Sequence[Work], costs: Sequence[float]) -> None:
        """What begun works cost. Returns within PATIENCE_S; what the ledger does not hear now it hears
        later, and counts in full until then."""
        ...

    async def stop(self) -> None:
        """Tell the ledger once more what it has not heard."""


class BudgetPayer:
    """A Payer from a budget. `new_nonce` gives a text that was never given before."""

    def __init__(
        self, budget: Budget, clock: Clock, new_nonce: Callable[[], str] = lambda: secrets.token_hex(8)
    ) -> None:
        self._budget = budget
        self._clock = clock
        self._new_nonce = new_nonce
        self._later: deque[Paid] = deque(maxlen=MOST_LATER)
        self._telling: asyncio.Task[None] | None = None

    async def begin(self, works: Sequence[Work]) -> list[Failure | None]:
        asks = [_ask(work, self._new_nonce()) for work in works]
        try:
            async with asyncio.timeout(PATIENCE_S):
                granted = await self._budget.begin(asks, self._clock.now())
        except (StoreUnavailable, TimeoutError) as error:
            # The ledger may have heard of it all the same, and nothing will be paid.
            self._tell_later([Paid(ask.subtask, ask.nonce, 0.0) for ask in asks])
            return [MISSING if isinstance(error, LedgerMissing) else AWAY] * len(asks)
        for work, ask, may in zip(works, asks, granted, strict=True):
            if may:
                work.nonce = ask.nonce
        return [None if may else REFUSED for may in granted]

    async def settle(self, works: Sequence[Work], costs: Sequence[float]) -> None:
        paid = [
            Paid(work.subtask.id, work.nonce, cost)
            for work, cost in zip(works, costs, strict=True)
            if work.nonce
        ]
        if not await self._told(paid):
            self._tell_later(paid)

    async def stop(self) -> None:
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.wait((self._telling,), timeout=1.0)
        self._telling = None
        if self._later and not await self._told(list(self._later)):
            log.warning("%d payments count as spent in full: the budget's store is away", len(self._later))

    async def _told(self, paid: Sequence[Paid]) -> bool:
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._budget.settle(paid, self._clock.now())
        except (StoreUnavailable, TimeoutError):
            return False
        return True

    def _tell_later(self, paid: Sequence[Paid]) -> None:
        self._later.extend(paid)
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._tell_on(), name="payments told later")

    async def _tell_on(self) -> None:
        while self._later:
            await asyncio.sleep(LATER_S)
            some = [self._later.popleft() for _ in range(min(AT_ONCE, len(self._later)))]
            if not await self._told(some):
                self._later.extendleft(reversed(some))


class Till(NamedTuple):
    """Who pays, and what an answer cost."""

    payer: Payer
    cost: Callable[[Subtask, Answer, Card], float]


class Errands:
    """Tasks of a service that deal with money. `failed` hears of one that raised, `done` of each end."""

    def __init__(self, failed: Callable[[BaseException], None], done: Callable[[], None]) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._failed = failed
        self._done = done

    def __len__(self) -> int:
        return len(self._tasks)

    def run(self, errand: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(errand, name="payment")
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def stop(self) -> None:
        """Give up what is under way."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=1.0)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed(error)
        self._done()


def is_paid(work: Work) -> bool:
    """Whether the work may cost something."""
    return work.subtask.max_cost > 0.0


def _ask(work: Work, nonce: str) -> Begin:
    subtask = work.subtask
    return Begin(subtask.id, nonce, subtask.tenant, subtask.max_cost, subtask.deadline + GRACE_MS)
