"""The inlet: records from a consumer group to one agent, committed only when they are done."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence

from streams import metrics
from streams.delivery.agent import Agent
from streams.delivery.clock import BrokerClock
from streams.delivery.committer import Committer
from streams.delivery.driver import Source
from streams.delivery.errors import DeliveryError, NotOwner, TwinTookOver, Unavailable
from streams.delivery.handout import Handout
from streams.delivery.isolation import Isolation
from streams.delivery.lane import Lane
from streams.delivery.opening import Opening, openings
from streams.delivery.outlet import Outlet
from streams.delivery.pausing import pause_and_resume
from streams.delivery.records import Batch, Place, Record
from streams.delivery.settings import InletSettings

log = logging.getLogger(__name__)

Deliver = Callable[[Batch], Awaitable[None]]
PAUSED_POLL_S = 0.02
LEAST_S = 1.0
"""What a stop spends on its last commit and on leaving even where its deadline has passed."""


class Inlet:
    """Polls, hands out, pauses, commits, and gives up partitions in order.

    `deliver` hands one batch to the agent's runner and may wait (a bounded channel). `failed` ends with the
    reason when the inlet cannot go on; the process must then end. `isolation` is shared by all inlets of a
    process. `lost` counts records that were deleted before they were done.
    """

    def __init__(
        self,
        source: Source,
        outlet: Outlet,
        agent: Agent,
        settings: InletSettings,
        clock: BrokerClock,
        isolation: Isolation | None = None,
    ) -> None:
        self._source = source
        self._outlet = outlet
        self._agent = agent
        self._clock = clock
        self.settings = settings
        self.lanes: dict[Place, Lane] = {}
        self.lost = 0
        self._retired = 0
        self._epoch = 0
        self._poll: asyncio.Task[None] | None = None
        self._opening: asyncio.Task[None] | None = None
        self._commits: asyncio.Task[None] | None = None
        self._stopping = False
        self._handout: Handout | None = None
        self.committer = Committer(source, self.lanes, settings)
        self._isolation = Isolation() if isolation is None else isolation
        self._isolation.add(self.lanes)
        self.ready = asyncio.Event()
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def finished(self) -> int:
        """Records handled so far; it only grows."""
        return self._retired + sum(lane.finished for lane in self.lanes.values())

    @property
    def waiting(self) -> int:
        """Records in hand that are not handled yet."""
        return sum(lane.window.next - lane.window.frontier for lane in self.lanes.values())

    def lag(self) -> dict[str, int]:
        """Records that are not finished, those not read yet among them, by topic."""
        found: dict[str, int] = {}
        for place, lane in self.lanes.items():
            behind = (self._source.end_seen(place) or 0) - lane.window.watermark
            found[lane.topic] = found.get(lane.topic, 0) + max(0, behind)
        return found

    async def start(self, deliver: Deliver) -> None:
        self._handout = Handout(deliver, self.committer, self._isolation)
        await self._source.start(self)
        self._commits = asyncio.create_task(self._commit_loop())

    async def stop(self, deadline_s: float) -> None:
        """Stop polling, drain within the deadline, commit, leave."""
        self._stopping = True
        until = time.monotonic() + deadline_s

        def left() -> float:
            return max(LEAST_S, until - time.monotonic())

        await self._halt()
        try:
            await self._let_go(deadline_s, left)
        except DeliveryError as error:
            self._fail(error)
        if self._commits is not None:
            self._commits.cancel()
            await asyncio.gather(self._commits, return_exceptions=True)
        if self.settings.leave and not self.failed.done():
            await self._source.leave()
        await self._source.stop(left())

    async def revoked(self, places: frozenset[Place]) -> None:
        """The group rebalances (eagerly: all partitions go)."""
        # No lock around the poll: it waits inside a reassignment, and a lock would deadlock with this
        # callback.
        try:
            await self._halt()
            self._source.check()
            await self._let_go(self.settings.drain_s, lambda: self.settings.wait_s)
        except TwinTookOver as error:
            self._fail(error)
            # To return is to join again, which would throw the twin out. The source's `stop` cancels this.
            await asyncio.Event().wait()
        except Exception as error:  # noqa: BLE001 - the client swallows what a listener raises
            self._fail(error)

    async def assigned(self, places: frozenset[Place]) -> None:
        """Note the new partitions; the work is done after the callback, for no heartbeat is sent during
        it."""
        if self._stopping:
            return
        self._epoch += 1
        metrics.REBALANCES.labels(self.settings.group).inc()
        self._opening = asyncio.create_task(self._open(places, self._epoch))
        self._opening.add_done_callback(self._ended)

    async def _open(self, places: frozenset[Place], epoch: int) -> None:
        found = await openings(self._source, places, self.settings.group, self.settings.wait_s)
        if epoch != self._epoch or self._stopping:
            return
        for opening in found:
            self._add_lane(opening, epoch)
        log.info("%s: %d partitions in epoch %d", self.settings.group, len(found), epoch)
        self.ready.set()
        self._poll = asyncio.create_task(self._poll_loop(epoch))
        self._poll.add_done_callback(self._ended)

    def _add_lane(self, opening: Opening, epoch: int) -> None:
        lane = Lane(
            opening.place,
            epoch,
            opening.start,
            opening.end,
            self._outlet,
            group=self.settings.group,
            refuse=self._agent.refuse,
            suspicion=opening.suspicion,
            most_open=self.settings.window_records,
        )
        self.lost += opening.lost
        self.lanes[lane.place] = lane
        self._source.seek(lane.place, lane.start)
        self._agent.assigned(lane)

    async def _poll_loop(self, epoch: int) -> None:
        assert self._handout is not None
        while epoch == self._epoch and not self._stopping:
            # A paused lane drains in ms, and its records can only come by a poll that begins after that.
            paused = any(lane.paused for lane in self.lanes.values())
            wait = min(PAUSED_POLL_S, self.settings.poll_s) if paused else self.settings.poll_s
            found = await self._source.poll(wait, self.settings.batch_records)
            for place, records in found.items():
                lane = self.lanes.get(place)
                if lane is not None and lane.epoch == epoch:
                    await self._prove(lane)
                    await self._hand_out(lane, records)
            pause_and_resume(self._source, self.lanes.values(), self.settings)

    async def _prove(self, lane: Lane) -> None:
        """Wait for a fresh proof that the partitions are ours."""
        # A process that was paused fetches on before it learns of its eviction: it answered again, for 15 s
        # of pause, what another had answered meanwhile.
        while lane.alive and not self.committer.lease.is_fresh(time.monotonic()):
            if not await self.committer.commit(force=True):
                await asyncio.sleep(self.settings.commit_every_s)

    async def _hand_out(self, lane: Lane, records: Sequence[Record]) -> None:
        assert self._handout is not None
        taken = lane.take(records)
        if taken:
            metrics.RECORDS.labels(lane.topic).inc(len(taken))
            self._clock.at_least(taken[-1].timestamp)
            await self._handout.give(lane, taken)

    async def _commit_loop(self) -> None:
        try:
            await self.committer.run()
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - reported to the owner, who ends the process
            self._fail(error)

    async def _halt(self) -> None:
        """Stop opening and polling."""
        self._epoch += 1
        tasks = [task for task in (self._opening, self._poll) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._opening = self._poll = None

    async def _let_go(self, budget_s: float, commit_s: Callable[[], float]) -> None:
        """Wait for what is in hand, commit for the last time, and end the lanes."""
        until = time.monotonic() + budget_s
        lanes = list(self.lanes.values())
        # A revocation may let the lanes go while a stop waits for them.
        while _in_hand(lanes) and time.monotonic() < until:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        try:
            await self.committer.hand_over(lanes, commit_s())
        except (NotOwner, Unavailable) as error:
            log.info(
                "%s: the last commit was not taken (%s); the next owner repeats what it held",
                self.settings.group,
                error,
            )
        finally:
            for lane in lanes:
                if lane.alive:
                    self._retire(lane)

    def _retire(self, lane: Lane) -> None:
        lane.alive = False
        self._retired += lane.finished
        self._agent.revoked(lane)
        if self.lanes.get(lane.place) is lane:
            del self.lanes[lane.place]

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._fail(task.exception())

    def _fail(self, error: BaseException | None) -> None:
        if not self.failed.done():
            self.failed.set_exception(error or DeliveryError("the inlet ended"))
            # Read once, so that a process that ends for another reason does not warn about it.
            self.failed.exception()


def _in_hand(lanes: Sequence[Lane]) -> bool:
    return any(lane.alive and not lane.is_drained() for lane in lanes)
