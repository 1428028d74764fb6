"""One process: its Kafka connection, clock, outlet and host, and the inlets that roles add to it."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from edgeway.roles.gauges import Gauges
from edgeway.roles.slots import Slot, hold
from edgeway.rules_watch import Prepare, Reach, RulesWatch, show
from schemas.rules import Rules
from schemas.topics import group_of
from streams.app import Host
from streams.delivery import Agent, BrokerClock, Inlet, InletSettings, Outlet, Runner, Stuck, Unavailable
from streams.delivery.drivers.aiokafka_sink import AiokafkaSink
from streams.delivery.drivers.aiokafka_source import AiokafkaSource
from streams.delivery.isolation import Isolation
from streams.delivery.watchdog import Watchdog
from streams.settings import Settings, client_options
from streams.undeliverable import instead_of

log = logging.getLogger(__name__)

Step = Callable[[], Awaitable[None]]
TICK_S = 0.05
LEAST_POLL_S = 0.02
GRACE_S = 2.0
"""What a stop may take beyond `stop_s`, for the last commit, for leaving and for sending what is left."""


@dataclass(slots=True)
class Process:
    """What the roles of one process share. Roles are added first; then `start`, `wait`, `stop`.

    `before` runs before any record is read, `once_ready` when partitions are assigned, `first` when a stop
    begins, `after` once all inlets have stopped and before the outlet does. `on_rules` is asked when the
    rules file changed, off the loop: each may refuse the new rules by a RulesError or UsageError, and gives
    what adopts them. Only if nobody refuses are they adopted, by all, on the loop. `shared` holds what there
    is one of for all roles (see caches.py). `running_since` tells, by group, when the oldest run of now
    began, and `stop_by` until when a stop may wait for work (both on the monotonic clock).
    """

    name: str
    settings: Settings
    rules: Rules
    options: dict[str, Any]
    clock: BrokerClock
    outlet: Outlet
    host: Host
    own_slot: Slot | None = None
    isolation: Isolation = field(default_factory=Isolation)
    inlets: list[Inlet] = field(default_factory=list)
    gauges: list[Gauges] = field(default_factory=list)
    before: list[Step] = field(default_factory=list)
    once_ready: list[Step] = field(default_factory=list)
    first: list[Step] = field(default_factory=list)
    after: list[Step] = field(default_factory=list)
    on_rules: list[Prepare] = field(default_factory=list)
    ready: bool = False
    watchdogs: dict[str, Watchdog] = field(default_factory=dict)
    running_since: dict[str, Callable[[], float | None]] = field(default_factory=dict)
    shared: dict[str, Any] = field(default_factory=dict)
    stop_by: float = math.inf
    _slow: set[str] = field(default_factory=set)

    @staticmethod
    def create(name: str, settings: Settings, rules: Rules) -> Process:
        """A process that reads nothing yet. Needs a running event loop."""
        options = {**client_options(settings), "client_id": f"edgeway-{name}"}
        clock = BrokerClock()
        outlet = Outlet(
            AiokafkaSink(options), clock, send_timeout_s=settings.send_timeout_s, substitute=instead_of
        )
        own_slot = _own_slot(name, settings)
        return Process(name, settings, rules, options, clock, outlet, Host(f"edgeway-{name}"), own_slot)

    def add_inlet(self, agent: Agent, topics: Sequence[str], role: str, *, pausing: bool = True) -> Inlet:
        """Feed `agent` with `topics` in the group of `role` (`router`, `aggregator`, or a capability's
        topic)."""
        have = self.settings
        group = group_of(role)
        source = AiokafkaSource(
            self.options,
            topics,
            group,
            slot=self.slot,
            exclusive=self.own_slot is not None,
            session_ms=have.session_timeout_ms,
            heartbeat_ms=have.heartbeat_ms,
            rebalance_ms=int((have.drain_s + 7.0) * 1000),
        )
        inlet = Inlet(
            source,
            self.outlet,
            agent,
            InletSettings(
                group=group,
                session_s=have.session_timeout_ms / 1000,
                batch_records=have.batch_records,
                window_records=have.window_records,
                window_bytes=have.window_bytes,
                pausing=pausing,
                commit_every_s=have.commit_ms / 1000,
                drain_s=have.drain_s,
                leave=self._leaves(),
            ),
            self.clock,
            self.isolation,
        )
        self.host.attach(inlet, Runner(agent))
        self.inlets.append(inlet)
        self.gauges.append(Gauges(inlet, topics))
        self.watchdogs[group] = Watchdog(have.watchdog_s, time.monotonic())
        return inlet

    @property
    def slot(self) -> str | None:
        """The static member id: the operator's, else one held of its own accord; None: a dynamic member."""
        return self.settings.slot or (self.own_slot.name if self.own_slot else None)

    def _leaves(self) -> bool:
        # The operator's slot is kept for its restart; one of our own accord stands for nobody once we go.
        if self.settings.slot is not None:
            return self.settings.leave_on_stop == "yes"
        return self.own_slot is not None and self.settings.leave_on_stop != "no"

    def watch_rules(self, before: Reach | None = None, after: Reach | None = None) -> None:
        """Follow the rules file, if there is one; `before` and `after` see to the topics of new rules."""
        path, every_s = self.settings.rules, self.settings.rules_poll_s
        if path is None or not every_s:
            show(self.rules)
            return

        def take(rules: Rules) -> None:
            self.rules = rules

        watch = RulesWatch(path, self.rules, self.on_rules, before, after, take)
        self.host.every(max(LEAST_POLL_S, every_s), "rules", watch.look)

    def add_timer(self, inlet: Inlet, tick: Callable[[int], None]) -> None:
        """Call `tick(now)` every TICK_S, under the zombie rule: never while the partitions may be
        another's."""

        async def guarded() -> None:
            lease = inlet.committer.lease
            if not lease.is_fresh(time.monotonic()):
                await inlet.committer.commit(force=True)
            if lease.is_fresh(time.monotonic()):
                tick(self.clock.now())

        self.host.every(TICK_S, f"timers of {inlet.settings.group}", guarded)

    async def start(self) -> None:
        """Start everything.

        Raises:
            Unavailable: Kafka does not answer.
        """
        await self.outlet.start()
        self.host.guard(self.outlet.failed)
        for step in self.before:
            await step()
        self.host.every(1.0, "watchdog", self._watch)
        await self.host.start()
        await asyncio.gather(*(self._until_ready(inlet) for inlet in self.inlets))
        for step in self.once_ready:
            await step()
        self.ready = True
        log.info("%s is ready", self.name)

    async def stop(self) -> None:
        """Stop polling, drain, commit, leave, flush, within `stop_s` and GRACE_S; also half started.

        Each part is stopped, whatever the others do; failures are logged, since the process ends anyway.
        """
        self.ready = False
        self.stop_by = time.monotonic() + self.settings.stop_s

        def left(grace_s: float) -> float:
            return max(0.1, self.stop_by + grace_s - time.monotonic())

        for step in self.first:
            await self._in_time("what is under way", step(), left(0.2 * GRACE_S))
        await self._in_time("the host", self.host.stop(left(0.0)), left(0.4 * GRACE_S))
        for step in self.after:
            await self._in_time("a role", step(), left(0.6 * GRACE_S))
        await self._in_time("the outlet", self.outlet.stop(left(0.0)), left(GRACE_S))
        if self.own_slot is not None:
            self.own_slot.release()

    async def _in_time(self, what: str, work: Awaitable[None], limit_s: float) -> None:
        # Not asyncio.timeout: what swallows its cancellation would be awaited for ever.
        task = asyncio.ensure_future(work)
        await asyncio.wait((task,), timeout=limit_s)
        if not task.done():
            task.cancel()
            log.error("%s: %s did not stop within %.1f s", self.name, what, limit_s)
        elif not task.cancelled() and (error := task.exception()) is not None:
            # The parts are independent, and one that fails must not keep the others running.
            log.error("%s: %s did not stop in order", self.name, what, exc_info=error)

    async def _until_ready(self, inlet: Inlet) -> None:
        ready = asyncio.ensure_future(inlet.ready.wait())
        ends: set[asyncio.Future[Any]] = {ready, inlet.failed}
        done, _ = await asyncio.wait(ends, timeout=60.0, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if inlet.failed in done:
            inlet.failed.result()
        if not done:
            raise Unavailable(f"group {inlet.settings.group} gave no partitions within 60 s")

    def _say_slow(self, now: float) -> None:
        """Log once of each run that lasts half the watchdog's time, and of its end."""
        slow = {group for group in self.running_since if self._running_s(group, now) >= self._patience_s}
        for group in sorted(slow - self._slow):
            log.warning(
                "%s: a run takes %.0f s and holds its thread; the process is not healthy until it ends",
                group,
                self._running_s(group, now),
            )
        for group in sorted(self._slow - slow):
            log.info("%s: the run that took so long has ended", group)
        self._slow = slow

    def _running_s(self, group: str, now: float) -> float:
        began = self.running_since[group]() if group in self.running_since else None
        return 0.0 if began is None else now - began

    @property
    def _patience_s(self) -> float:
        return self.settings.watchdog_s / 2

    async def _watch(self) -> None:
        now = time.monotonic()
        self._say_slow(now)
        for gauges in self.gauges:
            gauges.show(self.clock.now())
        for inlet in self.inlets:
            group = inlet.settings.group
            reachable = inlet.committer.lease.is_fresh(now)
            watchdog = self.watchdogs[group]
            if watchdog.is_stuck(now, finished=inlet.finished, waiting=inlet.waiting, reachable=reachable):
                heads = {
                    str(tuple(place)): lane.window.frontier
                    for place, lane in inlet.lanes.items()
                    if lane.is_busy()
                }
                log.error(
                    "%s hangs: nothing finished for %.0f s; waiting at %s",
                    group,
                    watchdog.stalled_s(now),
                    heads,
                )
                raise Stuck(f"{group}: {inlet.waiting} records wait and nothing was finished")

    def health(self) -> dict[str, Any]:
        """Progress, not presence, for `/healthz`; `ok` is False where work stands still or was lost."""
        now = time.monotonic()
        groups = {}
        for inlet in self.inlets:
            group = inlet.settings.group
            groups[group] = {
                "partitions": len(inlet.lanes),
                "waiting": inlet.waiting,
                "finished": inlet.finished,
                "stalled_s": round(self.watchdogs[group].stalled_s(now), 1) if inlet.waiting else 0.0,
                "running_s": round(self._running_s(group, now), 1),
                "owner_proved": inlet.committer.lease.is_fresh(now),
                "lost": inlet.lost,
            }
        half = self._patience_s
        ok = all(
            max(shown["stalled_s"], shown["running_s"]) < half and not shown["lost"]
            for shown in groups.values()
        )
        return {"ok": ok, "ready": self.ready, "groups": groups}


def _own_slot(name: str, have: Settings) -> Slot | None:
    """A slot among the processes on this machine that were started to do the same."""
    if have.slot is not None or not have.auto_slot:
        return None
    return hold((name, have.bootstrap, have.rules, have.app, have.side, have.capabilities, have.port))
