"""One batch of requests on its way through the router's stages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Container, Sequence

from schemas.errors import SchemaError
from schemas.ids import parse_subtask_id
from schemas.messages import Failure
from streams import metrics
from streams.cache import NOTHING, step_of
from streams.cache.figures import count
from streams.claims import ClaimError
from streams.delivery import Output
from streams.registry import Registry
from streams.router.ageing import kept_of, unbacked
from streams.router.claimed import Claimed, unshipped
from streams.router.item import NOT_KEPT, Item
from streams.router.outputs import outputs_of
from streams.router.plan import Planned
from streams.router.planner import Found, Planner
from streams.router.rim import Purses, Shelf

BREATH_S = 0.005
"""After so much work the loop gets a turn: heartbeats to Kafka must not wait for a large batch."""
LARGE_BYTES = 16_384
"""Records above this are examined on a thread of their own: that may take long, all in one go."""
OWN_MS = 1_000
"""What a request that waited in vain has left at least for an execution of its own."""


class Round:
    """Takes items through the stages, all under one planner and at one time (ms).

    Each stage asks its store once for all items. What a store does not say in time counts as the cautious
    answer: not cached, not paid for.
    """

    def __init__(
        self,
        planner: Planner,
        registry: Registry,
        now: int,
        purses: Purses | None,
        shelf: Shelf[Item] | None,
        cancelled: Container[str] = frozenset(),
        claimed: Claimed | None = None,
    ) -> None:
        self.planner = planner
        self._claimed = claimed
        self.now = now
        self.led: list[str] = []
        """Keys that items of this round execute for others."""
        self._registry = registry
        self._purses = purses
        self._shelf = shelf
        self._cancelled = cancelled
        self._idle: list[str] = []
        self._view = registry.view(now)
        self._turn = time.perf_counter() + BREATH_S

    async def find(self, items: Sequence[Item]) -> None:
        """The task of each item."""
        for item in items:
            if item.standing == "repeat":
                continue
            if item.standing == "conflict":
                item.planned = self.planner.conflict(item.admitted)
                continue
            if item.admitted.scope in self._cancelled:
                item.planned = self.planner.cancelled(item.admitted)
                metrics.CANCELLED.labels("router").inc()
                continue
            if item.failure is not None:
                item.planned = self.planner.declined(item.admitted, item.failure)
                continue
            found = self.planner.find(item.admitted, self.now)
            if isinstance(found, Planned):
                item.planned = found
            elif self._shelf is not None:
                found = self.planner.keyed(found, self._view)
            if isinstance(found, Found):
                if item.found is not None and item.found.key != found.key:
                    item.older = None  # of other rules
                item.found = found
            if time.perf_counter() >= self._turn:
                await self._breathe()

    async def look_up(self, items: Sequence[Item], follows: bool = True) -> None:
        """Answer from the cache what can be; without an answer an item leads, or waits for another unless it
        `follows` none."""
        shelf = self._shelf
        if shelf is None:
            return
        keyed = [
            (item, item.found) for item in items if item.found is not None and item.found.key is not None
        ]
        keys = list(dict.fromkeys(str(found.key) for _, found in keyed))
        entries = await shelf.entries(keys)
        for item, found in keyed:
            key = str(found.key)
            entry = entries.get(key)
            if entry is not None and self._answer(item, found, entry):
                count("answer", "hit")
            elif entry is None and not shelf.is_there:
                count("answer", "unavailable")
            elif entry == NOTHING or not self.planner.rules.cache_s or not follows:
                count("answer", "miss")
            else:
                self._join(item, key, shelf)

    def land(self, item: Item, entry: bytes | None) -> None:
        """Answer an item that has waited, if there is an answer now."""
        item.waits = False
        if item.planned is not None or item.found is None:
            return  # cancelled or refused meanwhile
        shared = entry is not None and self._answer(item, item.found, entry)
        count("answer", "shared" if shared else "miss")

    def _join(self, item: Item, key: str, shelf: Shelf[Item]) -> None:
        assert item.found is not None
        deadline = item.found.info.deadline
        if shelf.flights.lead(key, deadline, self.now):
            self.led.append(key)
        else:
            item.waits = shelf.flights.follow(key, item, deadline - OWN_MS, self.now)
        if not item.waits:
            count("answer", "miss")

    def _answer(self, item: Item, found: Found, entry: bytes) -> bool:
        """Whether `entry` answers the item; one that is too old may still stand in."""
        kept = kept_of(entry, found.info, self.planner.rules, found.task.rule, self.now)
        if kept is None:
            return False
        if kept.is_fresh:
            item.planned = self.planner.cached(found, kept.answer)
        else:
            item.older = kept.answer
        return kept.is_fresh

    async def examine(self, items: Sequence[Item]) -> None:
        """The verdict on each item that needs one."""
        for item in items:
            if item.found is None or item.planned is not None or item.waits:
                continue
            if item.opened is not None or len(item.record.value or b"") > LARGE_BYTES:
                item.considered = await asyncio.to_thread(self.planner.examine, item.found, item.opened)
            else:
                item.considered = self.planner.examine(item.found)
            if time.perf_counter() >= self._turn:
                await self._breathe()

    async def plan(self, items: Sequence[Item]) -> None:
        """The plan of each item, as far as the budget is not asked."""
        keeps = self._shelf is not None and bool(self.planner.rules.cache_s)
        for item in items:
            if item.considered is None:
                continue
            left = None if self._purses is None else self._purses.left(item.admitted.request.tenant)
            item.planned = self.planner.plan(
                item.considered,
                self._view,
                self.now,
                keeps_steps=keeps,
                left_budget=left,
                older=item.older,
            )
            self._count_calls(item.planned)
            if time.perf_counter() >= self._turn:
                await self._breathe()

    async def keep(self, items: Sequence[Item]) -> None:
        """Answer first steps from the cache where it has them."""
        if self._shelf is None:
            return
        wanted: dict[str, list[tuple[Item, str]]] = {}
        for item in items:
            if item.considered is None or item.planned is None:
                continue
            roots = [step for step in item.planned.plan.steps if not step.after]
            for step, sent in zip(roots, item.planned.first, strict=False):
                if step.cache is not None:
                    wanted.setdefault(step.cache, []).append((item, sent.subtask.id))
        hits = 0
        for key, entry in (await self._shelf.entries(list(wanted))).items():
            for item, subtask in wanted[key]:
                hits += self._keep(item, subtask, entry)
        count("step", "hit", hits)
        count(
            "step", "miss" if self._shelf.is_there else "unavailable", sum(map(len, wanted.values())) - hits
        )

    def _keep(self, item: Item, subtask: str, entry: bytes) -> bool:
        """Whether `entry` answers the subtask."""
        assert item.planned is not None
        partial = step_of(entry, subtask, item.planned.plan.request.deadline)
        if partial is None:
            return False
        item.kept = {**item.kept, subtask: partial}
        step = parse_subtask_id(subtask).step
        unpaid = [each for each in item.planned.reservations if parse_subtask_id(each.subtask).step != step]
        item.planned = item.planned._replace(reservations=tuple(unpaid))
        return True

    async def reserve(self, items: Sequence[Item]) -> None:
        """Set aside what the plans may cost; a request that the budget refuses is planned again without."""
        if self._purses is None:
            return
        wanted = {
            index: item.planned.reservations
            for index, item in enumerate(items)
            if item.planned is not None and item.planned.reservations
        }
        if not wanted:
            return
        for index, purse in (await self._purses.reserve(wanted, self.now)).items():
            item = items[index]
            if purse == "open" or item.considered is None:
                continue
            item.kept = NOT_KEPT
            item.planned = self.planner.plan(item.considered, self._view, self.now, purse, older=item.older)
            if time.perf_counter() >= self._turn:
                await self._breathe()

    async def ship(self, items: Sequence[Item]) -> None:
        """Copy to the cloud's store what is sent there; a request whose copies fail is planned again with the
        cloud closed."""
        for item in items:
            claimed = None if item.opened is None else self._claimed
            if claimed is None or item.considered is None or item.planned is None:
                continue
            try:
                item.planned = await claimed.shipped(item)
            except ClaimError:
                before = set(item.planned.reservations)
                item.considered = unshipped(item.considered)
                item.planned = self.planner.plan(item.considered, self._view, self.now, older=item.older)
                if not before.issuperset(item.planned.reservations):
                    item.planned = self.planner.plan(
                        item.considered, self._view, self.now, "away", older=item.older
                    )
                item.kept = NOT_KEPT
                self._idle += [each.subtask for each in before.difference(item.planned.reservations)]

    def outputs(self, item: Item) -> list[Output]:
        """The records of an item's plan; where one does not fit or has no topic, that of the refusal that
        says so."""
        assert item.planned is not None
        try:
            return outputs_of(item.planned, item.kept)
        except SchemaError as error:
            if item.planned.plan.stand_in is not None:
                item.planned = unbacked(item.planned)
                return self.outputs(item)
            failure = Failure(code=error.code, message=str(error))
            self._idle += [each.subtask for each in item.planned.reservations]
            item.planned = self.planner.refused(item.planned.plan.request, failure)
            return outputs_of(item.planned)

    async def close(self) -> None:
        """Free what was set aside for plans that could not be written."""
        if self._purses is not None:
            await self._purses.release(self._idle, self.now)

    def _count_calls(self, planned: Planned) -> None:
        """Tell the registry of calls that it counts, so that only a few pass."""
        counted = self._view.counted
        if not counted:
            return
        told = False
        for step in planned.plan.steps:
            for index, attempt in enumerate(step.attempts):
                if (attempt.side, attempt.capability) in counted:
                    # A later attempt may be made, and by the aggregator: it is a trial, and no call yet.
                    self._registry.admit(
                        attempt.side, attempt.capability, self.now, sent=index == 0 and not step.after
                    )
                    told = True
        if told:
            self._view = self._registry.view(self.now)

    async def _breathe(self) -> None:
        await asyncio.sleep(0)
        self._turn = time.perf_counter() + BREATH_S
