"""The live registry: heartbeats in, views out. Pure: append times and the clock are arguments, in ms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from schemas.cards import Card, Heartbeat, Offer
from schemas.messages import Side
from schemas.rules import Rules
from streams.registry.breaker import SLOW_MS, Breaker
from streams.registry.figures import Figures, Key, Target, View, aggregate
from streams.registry.pace import Pace

BEAT_MS = 2_000
GONE_MS = 3 * BEAT_MS
SILENT_MS = 8 * BEAT_MS
QUIET_MS = 3 * BEAT_MS // 2
MAX_BLIND_MS = 30_000
HUNG_MS = 5_000
HUNG_FACTOR = 10
"""A worker hangs where it served nothing since its last beat and its oldest run takes longer than HUNG_MS and
than so many times the `slow_ms` of its capability."""


def slow_limits(rules: Rules) -> dict[str, int]:
    """The `slow_ms` of each capability that has one in the rules, the most generous where steps differ."""
    limits: dict[str, int] = {}
    for task in rules.tasks.values():
        for step in task.steps:
            if step.slow_ms is not None:
                for capability in (step.capability, *step.alternatives):
                    limits[capability] = max(step.slow_ms, limits.get(capability, 0))
    return limits


class _Worker:
    __slots__ = ("moving", "offers", "seen")

    def __init__(self) -> None:
        self.seen = 0
        self.offers: dict[Key, Offer] = {}
        self.moving: set[Key] = set()

    def take(self, heartbeat: Heartbeat, append_time: int) -> None:
        """Note a beat, and which capabilities served since the last one."""
        before, moved = self.offers, self.moving if append_time - self.seen < BEAT_MS // 2 else set()
        self.seen = append_time
        # A worker that left stays as an empty entry, so that an older beat read late does not bring it back.
        offers = () if heartbeat.leaving else heartbeat.offers
        self.offers = {(offer.card.side, offer.card.capability): offer for offer in offers}
        self.moving = {
            key
            for key, offer in self.offers.items()
            # A beat of news comes too soon after the last one to say that nothing moves.
            if key not in before or key in moved or offer.live.served != before[key].live.served
        }


class Registry:
    """Who offers what, by the heartbeats read so far.

    A worker is gone three beats after its last one, or eight where nobody's beat has come since: while a
    broker dies Kafka takes no writes for some 10 s, and everyone seems dead. When such a silence ends, or a
    time in which nothing could be read, all have another beat's time for theirs. That is measured at the end
    of what was read, not by the clock alone: a router that was paused would else believe everyone dead until
    it has caught up. Whoever feeds the registry calls `reached` after each look at the topic's end. After
    MAX_BLIND_MS without one the clock counts.
    """

    def __init__(self, slow_ms: Mapping[str, int] | None = None) -> None:
        self._slow_ms = dict(slow_ms or {})
        self._workers: dict[str, _Worker] = {}
        self._breakers: dict[Key, Breaker] = {}
        self._paces: dict[Key, Pace] = {}
        self._horizon = 0
        self._heard = 0
        self._held_at = self._held_until = 0
        self._view: View | None = None
        self._fresh_until = 0

    def observe(self, heartbeat: Heartbeat, append_time: int) -> None:
        """Take a heartbeat appended at `append_time`; one older than its worker's last is dropped."""
        self._horizon = max(self._horizon, append_time)
        if append_time - self._heard > QUIET_MS:
            self._hold(append_time, append_time + BEAT_MS)
        self._heard = max(self._heard, append_time)
        self._view = None
        known = self._workers.get(heartbeat.worker)
        if known is not None and append_time < known.seen:
            return
        worker = known or _Worker()
        worker.take(heartbeat, append_time)
        self._workers[heartbeat.worker] = worker
        for key in worker.offers:
            self._breaker(key).observe(self._figures(key, append_time), append_time)

    def reached(self, at: int) -> None:
        """Every beat appended before `at` has been observed."""
        if at - self._horizon > QUIET_MS:
            self._hold(self._horizon, at + BEAT_MS)
        self._horizon = max(self._horizon, at)

    def knows(self, worker: str) -> bool:
        """Whether a beat of `worker` that offers something has been observed, and no farewell since."""
        known = self._workers.get(worker)
        return known is not None and bool(known.offers)

    def view(self, now: int) -> View:
        """The snapshot at `now`; the same object while nothing changed."""
        reference = self._reference(now)
        if self._view is None or reference >= self._fresh_until or now >= self._fresh_until:
            self._view = self._snapshot(reference, now)
        return self._view

    def live(self, side: Side, capability: str, now: int) -> Figures | None:
        """The figures of a capability on one side, None where no worker offers it."""
        target = self.view(now).at(side, capability)
        return None if target is None else target.figures

    def card(self, side: Side, capability: str, now: int) -> Card | None:
        """The card of the worker heard last, None where no worker offers it."""
        key: Key = (side, capability)
        known = [
            (worker.seen, name, worker.offers[key].card)
            for name, worker in self._workers_of(key, self._reference(now))
        ]
        return max(known, key=lambda entry: entry[:2])[2] if known else None

    def admit(self, side: Side, capability: str, now: int, *, sent: bool = True) -> None:
        """A call goes to this target at `now`, or may go later (not `sent`): it uses up a trial where that
        is half open, and if sent one call of its `max_qps`."""
        key: Key = (side, capability)
        breaker, pace = self._breakers.get(key), self._paces.get(key)
        if breaker is not None and breaker.gate(now) == "half_open":
            breaker.admit(now)
            if breaker.gate(now) != "half_open":
                self._view = None
        if pace is not None and sent:
            pace.take(now)
            if not pace.has_room(now):
                self._view = None

    def limit(self, slow_ms: Mapping[str, int]) -> None:
        """New `slow_ms` by capability, as the rules change."""
        self._slow_ms = dict(slow_ms)
        for (_, capability), breaker in self._breakers.items():
            breaker.slow_ms = self._slow_ms.get(capability, SLOW_MS)

    def _reference(self, now: int) -> int:
        reference = self._horizon if now - MAX_BLIND_MS < self._horizon < now else now
        return self._held_at if reference <= self._held_until else self._unless_silent(reference)

    def _hold(self, reference: int, until: int) -> None:
        """Let nobody die of the time between `reference` and `until`."""
        at = self._unless_silent(reference)
        self._held_at = min(at, self._held_at) if reference <= self._held_until else at
        self._held_until = until

    def _unless_silent(self, reference: int) -> int:
        return min(reference, max(self._heard + QUIET_MS, reference - (SILENT_MS - GONE_MS)))

    def _snapshot(self, reference: int, now: int) -> View:
        self._forget(reference)
        keys = {key for worker in self._workers.values() for key in worker.offers}
        targets: dict[Key, Target] = {}
        counted: set[Key] = set()
        changes = [worker.seen + GONE_MS + 1 for worker in self._workers.values() if worker.offers]
        for key in sorted(keys):
            breaker = self._breaker(key)
            figures = self._figures(key, reference)
            pace = self._pace(key, figures.max_qps)
            gate, room = breaker.gate(now), pace is None or pace.has_room(now)
            targets[key] = Target(figures=figures, gate=gate, throttled=not room)
            if gate == "half_open" or pace is not None:
                counted.add(key)
            change = breaker.next_change()
            more = None if pace is None else pace.next_room(now)
            changes += [at for at in (change, more) if at is not None]
        self._fresh_until = min(changes, default=now + BEAT_MS)
        return View(targets=targets, counted=frozenset(counted))

    def _forget(self, reference: int) -> None:
        gone = [name for name, worker in self._workers.items() if reference - worker.seen > GONE_MS]
        for name in gone:
            del self._workers[name]
        if gone:
            kept = {key for worker in self._workers.values() for key in worker.offers}
            self._breakers = {key: breaker for key, breaker in self._breakers.items() if key in kept}
            self._paces = {key: pace for key, pace in self._paces.items() if key in kept}

    def _figures(self, key: Key, reference: int) -> Figures:
        going: list[Offer] = []
        hung: list[Offer] = []
        away: list[Offer] = []
        limit_ms = max(HUNG_MS, HUNG_FACTOR * self._slow_ms.get(key[1], SLOW_MS))
        for _, worker in self._workers_of(key, reference):
            offer = worker.offers[key]
            if offer.live.reachable is False:
                away.append(offer)
                continue
            # One with several threads may serve on while one of them hangs.
            hangs = offer.live.busy_ms > limit_ms and key not in worker.moving
            (hung if hangs else going).append(offer)
        return aggregate(going, hung, away)

    def _workers_of(self, key: Key, reference: int) -> Iterator[tuple[str, _Worker]]:
        for name, worker in self._workers.items():
            if key in worker.offers and reference - worker.seen <= GONE_MS:
                yield name, worker

    def _breaker(self, key: Key) -> Breaker:
        breaker = self._breakers.get(key)
        if breaker is None:
            breaker = self._breakers[key] = Breaker(self._slow_ms.get(key[1], SLOW_MS))
        return breaker

    def _pace(self, key: Key, max_qps: float | None) -> Pace | None:
        if max_qps is None:
            self._paces.pop(key, None)
            return None
        pace = self._paces.get(key)
        if pace is None:
            pace = self._paces[key] = Pace(max_qps)
        pace.rate = max_qps
        return pace
