"""The router as an agent: batches of requests in, plans and first subtasks out."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Container, Sequence

from schemas.errors import Malformed, SchemaError
from schemas.messages import Failure, RequestInfo
from streams import metrics
from streams.budget.ports import Budget
from streams.cache import Cache, Flights, Landed, Landing
from streams.claims import NO_OBJECTS, Objects
from streams.delivery import Batch, Clock, Lane, Output, Record
from streams.privacy.verdict import verdict_of
from streams.registry import Gate, Registry, View, slow_limits
from streams.router.admission import admit, info_of, info_of_unreadable
from streams.router.ageing import is_old
from streams.router.claimed import Claimed
from streams.router.item import Item
from streams.router.outputs import plan_record
from streams.router.plan import refusal
from streams.router.planner import Planner
from streams.router.repeats import standings
from streams.router.rim import Purses, Shelf
from streams.router.round import Round
from streams.router.telemetry import Telemetry
from streams.stores import SeenStore
from streams.tracing import Tracer

log = logging.getLogger(__name__)

SHOW_EVERY_S = 1.0
_UNREADABLE = frozenset(("malformed", "unsupported_version", "too_large"))
_GATES: dict[Gate, int] = {"closed": 0, "half_open": 1, "slow": 2, "failing": 2, "away": 2}


class Router:
    """An Agent for `requests`.

    `registry` is fed by the host; `seen` remembers ids between routers (None: only the aggregator notices
    repeats); `budget` is asked before what costs is published (None: the rules have none); `cache` holds
    answers (None: nothing is kept); `cancelled` are the scoped ids whose callers want no answer;
    `trace_sample` is the share of requests that are traced where no caller says it, and `tracer` takes their
    spans; `objects` is where large inputs lie. The host runs `watch`, and with a cache `follow`, as tasks of
    their own, and awaits `close` at the end.
    """

    def __init__(
        self,
        planner: Planner,
        registry: Registry,
        clock: Clock,
        *,
        seen: SeenStore | None = None,
        budget: Budget | None = None,
        cache: Cache | None = None,
        cancelled: Container[str] = frozenset(),
        trace_sample: float = 0.0,
        tracer: Tracer | None = None,
        objects: Objects = NO_OBJECTS,
    ) -> None:
        self._claimed = Claimed(objects, self._finish_claimed)
        self._trace_sample = trace_sample
        self._telemetry = Telemetry(tracer)
        self._cancelled = cancelled
        self._registry = registry
        self._clock = clock
        self._seen = seen
        self._purses = None if budget is None else Purses(budget)
        self._shelf: Shelf[Item] | None = None
        self._landing: Landing[Item] | None = None
        if cache is not None:
            flights = Flights[Item]()
            self._shelf = Shelf(cache, flights)
            self._landing = Landing(cache, flights, clock, self._resume, self._is_old)
        self._shown: View | None = None
        self.adopt(planner)

    def adopt(self, planner: Planner) -> None:
        """Plan by this planner from the next batch on: no plan mixes two versions of the rules."""
        self._planner = planner
        self._registry.limit(slow_limits(planner.rules))

    async def follow(self) -> None:
        """Look after the requests that wait for the answer to an equal one, until cancelled."""
        if self._landing is not None:
            await self._landing.run()

    async def rest(self, timeout_s: float | None = None) -> None:
        """Wait until requests with claims are planned, or the time is up."""
        await self._claimed.rest(timeout_s)

    async def close(self) -> None:
        """End what still reads objects."""
        await self._claimed.close()

    async def watch(self) -> None:
        """Show the breakers as they are also while no request comes, until cancelled."""
        while True:
            self._show(self._registry.view(self._clock.now()))
            await asyncio.sleep(SHOW_EVERY_S)

    async def handle(self, batch: Batch) -> None:
        """Plan every request of `batch`; what cannot be read is failed alone. One settle for all others."""
        items: list[Item] = []
        broken: list[tuple[Record, Failure]] = []
        self._telemetry.read(batch.records, self._clock.now())
        for record in batch.records:
            try:
                items.append(Item(admit(record, self._trace_sample), record, batch.lane))
            except Malformed as error:
                broken.append((record, Failure(code=error.code, message=str(error))))
        for item, how in zip(
            items, await standings(self._seen, [item.admitted for item in items]), strict=True
        ):
            item.standing = how
        items, apart = self._claimed.sorted_out(items)
        began, round_ = time.perf_counter(), await self._round()
        try:
            await round_.find(items)
            await round_.look_up(items)
            outputs = await self._written(round_, items, began)
        except BaseException:
            await self._resume(self._let_go(round_, items, failed=True))
            raise
        # Nothing is settled before all is planned: after an exception the runner brings the batch again.
        for record, failure in broken:
            batch.lane.fail(record, failure)
            metrics.REQUESTS.labels(failure.code).inc()
        offsets = [item.record.offset for item in items if not item.waits]
        if offsets:
            batch.lane.settle(offsets, outputs)
        self._wait([item for item in items if item.waits])
        await self._resume(self._let_go(round_, items))
        for item in apart:
            await self._claimed.take(item, self._planner, self._clock.now())

    def refuse(self, record: Record, failure: Failure) -> Sequence[Output]:
        """An error answer on `joins` where the record names an id; nothing where it does not."""
        try:
            info = self._info_of_failed(record, failure)
            return (plan_record(refusal(info, failure, self._planner.rules.version)),)
        except SchemaError as error:
            log.warning(
                "%s/%d offset %d gets no answer: %s", record.topic, record.partition, record.offset, error
            )
            return ()

    def assigned(self, lane: Lane) -> None:
        """Nothing is kept per lane before requests come."""

    def revoked(self, lane: Lane) -> None:
        """Whoever owns the partition next reads again what waits here."""
        if self._shelf is not None:
            self._shelf.flights.drop(lambda item: item.lane is lane)

    async def _round(self) -> Round:
        now = self._clock.now()
        if self._purses is not None:
            await self._purses.look(now)
        self._show(self._registry.view(now))
        planner, registry, purses, shelf = self._planner, self._registry, self._purses, self._shelf
        return Round(planner, registry, now, purses, shelf, self._cancelled, self._claimed)

    async def _written(self, round_: Round, items: Sequence[Item], began: float) -> list[Output]:
        await round_.examine(items)
        await round_.plan(items)
        await round_.keep(items)
        await round_.reserve(items)
        await round_.ship(items)
        outputs: list[Output] = []
        for item in items:
            if item.planned is not None:
                item.outputs = round_.outputs(item)
                outputs += item.outputs
        await round_.close()
        self._telemetry.planned(items, round_.now, time.perf_counter() - began)
        return outputs

    def _let_go(self, round_: Round, items: Sequence[Item], failed: bool = False) -> list[Landed[Item]]:
        """Those who wait for an item of this round that left no answer to wait for."""
        if self._shelf is None:
            return []
        flights = self._shelf.flights
        if failed:
            # The runner brings these again.
            mine = {id(item) for item in items}
            flights.drop(lambda item: id(item) in mine)
        sent = set() if failed else {item.planned.plan.cache for item in items if item.planned is not None}
        return [one for key in round_.led if key not in sent for one in flights.abandon(key)]

    async def _finish_claimed(self, item: Item) -> None:
        """Plan a request whose claims are read, and settle it."""
        began, round_ = time.perf_counter(), await self._round()
        failed = True
        try:
            await round_.find([item])
            # It waits for no equal one: what it claims would stay in memory.
            await round_.look_up([item], follows=False)
            await self._written(round_, [item], began)
            failed = False
        finally:
            await self._resume(self._let_go(round_, [item], failed=failed))
        item.lane.settle((item.record.offset,), item.outputs)

    def _wait(self, items: Sequence[Item]) -> None:
        for item in items:
            item.lane.absorb(item.record.offset)
        if items and self._landing is not None:
            metrics.REQUESTS.labels("shared").inc(len(items))
            self._landing.wake()

    async def _resume(self, landed: Sequence[Landed[Item]]) -> None:
        """Answer those that wait no longer from what they waited for, or plan them now."""
        if not landed:
            return
        try:
            await self._answer(landed)
        except Exception:
            log.exception("requests that waited for an equal one failed; trying them one by one")
            for one in landed:
                await self._alone(one)

    async def _alone(self, one: Landed[Item]) -> None:
        try:
            await self._answer([one])
        except Exception as error:
            log.exception("a request that waited for an equal one failed for good")
            failure = Failure(code="handler_error", message=f"the handler failed: {type(error).__name__}")
            one.waiter.lane.fail(one.waiter.record, failure)

    async def _answer(self, landed: Sequence[Landed[Item]]) -> None:
        began, round_ = time.perf_counter(), await self._round()
        items = [one.waiter for one in landed if one.waiter.lane.alive]
        # The rules may have changed since.
        await round_.find(items)
        for one in landed:
            round_.land(one.waiter, one.entry)
        await self._written(round_, items, began)
        for item in items:
            item.lane.settle((item.record.offset,), item.outputs)

    def _is_old(self, entry: bytes, now: int) -> bool:
        return is_old(entry, now, self._planner.rules)

    def _show(self, view: View) -> None:
        """The breakers as metrics, when they may have changed."""
        if view is self._shown:
            return
        shown = {} if self._shown is None else self._shown.targets
        self._shown = view
        for (side, capability), target in view.targets.items():
            metrics.BREAKER.labels(capability, side).set(_GATES[target.gate])
        for side, capability in shown.keys() - view.targets.keys():
            metrics.BREAKER.remove(capability, side)

    def _info_of_failed(self, record: Record, failure: Failure) -> RequestInfo:
        if failure.code not in _UNREADABLE:
            admitted = admit(record, self._trace_sample)
            return info_of(admitted, verdict_of(admitted.request), admitted.request.task, None)
        return info_of_unreadable(record, self._trace_sample)
