"""The worker agent: subtasks in, partials out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Container, Mapping, Sequence
from functools import partial
from typing import Any

from schemas import codec
from schemas.cards import Card, Offer
from schemas.errors import Malformed
from schemas.ids import parse_subtask_id
from schemas.messages import Failure, Subtask, Timings
from schemas.rules_structs import Price
from schemas.topics import capability_topic
from streams import metrics
from streams.claims import NO_OBJECTS, Objects
from streams.delivery import Batch, Clock, Lane, Outgoing, Output, Record
from streams.tracing import Tracer
from workers.backends import Backend
from workers.claimed import Claimed
from workers.errors import WorkerError
from workers.inference import CANCELLED
from workers.partials import Partials
from workers.payments import Payer, Till
from workers.refused import Refused
from workers.service import Limits, Service
from workers.telemetry import Telemetry
from workers.work import Origin, Run, Work, taken

log = logging.getLogger(__name__)


class Worker:
    """Answers the subtasks of its backends' topics.

    One worker may read several capabilities, but a full queue of one then holds the records of the others up:
    give each topic a worker of its own where a slow model stands beside a fast one. `start` before the first
    record, `stop` after the last one; `watch` ends only by raising. `payer` is asked for subtasks that may
    cost something; without one no budget is in force. `cancelled` are the scoped ids of the requests whose
    subtasks are not begun any more; `objects` is where large payloads lie.
    """

    def __init__(
        self,
        backends: Sequence[Backend],
        *,
        name: str,
        clock: Clock,
        limits: Limits | None = None,
        payer: Payer | None = None,
        tracer: Tracer | None = None,
        cancelled: Container[str] = frozenset(),
        objects: Objects = NO_OBJECTS,
    ) -> None:
        self.name = name
        self._clock = clock
        self._cancelled = cancelled
        self._partials = Partials(f"edgeway/worker/{name}")
        self._telemetry = Telemetry(self._partials.cost, tracer)
        limits = limits or Limits()
        self._claimed = Claimed(objects, self._partials, clock, limits.max_bytes)
        self._services: dict[tuple[str, str], Service] = {}
        self._lanes: dict[int, Lane] = {}
        self._stopping = False
        self.has_budget = payer is not None
        self._uncounted_told = payer is not None
        if not backends:
            raise WorkerError("a worker needs at least one backend")
        for backend in backends:
            card = backend.card
            if (card.side, card.capability) in self._services:
                raise WorkerError(f"{card.side}/{card.capability} is offered twice; keep one backend of it")
            till = None if payer is None else Till(payer, self._partials.cost)
            service = Service(backend, self._finish, clock, limits, till, self._unwritten, cancelled)
            self._services[card.side, card.capability] = service
        self.ready = False

    def price(self, prices: Mapping[str, Price]) -> None:
        """What calls cost, by `SIDE/CAPABILITY`, in place of what the cards say."""
        self._partials.prices = prices

    @property
    def cards(self) -> tuple[Card, ...]:
        """What is served now."""
        return tuple(service.backend.card for service in self._services.values())

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics to read."""
        return tuple(capability_topic(card.side, card.capability) for card in self.cards)

    @property
    def pending(self) -> int:
        """Rows that wait or run."""
        return sum(service.pending for service in self._services.values())

    @property
    def stuck_since(self) -> float | None:
        """When the oldest run of now began (`time.monotonic()`), None where none runs: for the watchdog."""
        times = (service.stuck_since for service in self._services.values())
        return min((began for began in times if began is not None), default=None)

    def hung_s(self, now: float) -> float:
        """For how long (`time.monotonic()` is `now`) the run that is worst off has been at it, a remote one
        beyond its last deadline."""
        return max(service.hung_s(now) for service in self._services.values())

    def offers(self) -> tuple[Offer, ...]:
        """Cards and live figures; asks no model."""
        return tuple(service.offer() for service in self._services.values())

    def news(self) -> tuple[object, ...]:
        """What a heartbeat should tell as soon as it changes; see Counters."""
        return tuple(service.counters.news(service.backend) for service in self._services.values())

    def service(self, side: str, capability: str) -> Service | None:
        """Who serves a capability; None where nobody does."""
        return self._services.get((side, capability))

    def switch(self, backend: Backend) -> None:
        """From the next batch on run `backend`, loaded already, in the place of the one of its capability.

        Raises:
            WorkerError: no such capability here.
        """
        card = backend.card
        service = self.service(card.side, card.capability)
        if service is None:
            raise WorkerError(f"{card.side}/{card.capability} is not served here; known are {self.topics}")
        service.switch(backend)

    def bound(self, service: Service) -> float | None:
        """The most that a call may cost, by the rules' prices or else the card; None where nobody says."""
        card = service.backend.card
        price = self._partials.prices.get(f"{card.side}/{card.capability}")
        return card.max_cost if price is None else price.bound

    async def start(self) -> None:
        """Load every backend; `ready` then.

        Raises:
            LoadError: one cannot be made ready; those that were are closed again.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for service in self._services.values():
                    group.create_task(service.start())
        except ExceptionGroup as errors:
            # Not `except*`: Python 3.11.2, which is Debian's, wraps what is raised in there once more.
            failed = next((error for error in errors.exceptions if isinstance(error, WorkerError)), None)
            if failed is None:
                raise
            await self.stop(0.0)
            raise failed from None
        self.ready = True

    async def stop(self, deadline_s: float) -> None:
        """Drain within `deadline_s`; what is left is dropped unfinished, and comes again elsewhere."""
        self.ready = False
        self._stopping = True
        async with asyncio.TaskGroup() as group:
            group.create_task(self._claimed.rest(deadline_s))
            for service in self._services.values():
                group.create_task(service.stop(deadline_s))

    async def watch(self) -> None:
        """Wait for a service to die, and raise what killed it; returns after `stop`."""
        tasks = [service.task for service in self._services.values() if service.task is not None]
        if not tasks:
            raise WorkerError("the worker was not started")
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if not task.cancelled():
                task.result()

    def assigned(self, lane: Lane) -> None:
        self._lanes[id(lane)] = lane

    def revoked(self, lane: Lane) -> None:
        self._lanes.pop(id(lane), None)
        for service in self._services.values():
            service.forget(lane)

    def refuse(self, record: Record, failure: Failure) -> Sequence[Output]:
        return self._partials.refused(record, failure)

    def _unwritten(self) -> int:
        """Bytes of answers that Kafka has not acknowledged."""
        return self._claimed.unwritten + sum(lane.writing_bytes for lane in self._lanes.values())

    async def handle(self, batch: Batch) -> None:
        """Queue the batch's subtasks; waits while the queue is full. What needs no model is answered now."""
        lane = batch.lane
        side = lane.topic.partition(".")[0]
        refused = Refused(lane)
        self._telemetry.read(batch.records, self._clock.now())
        for record in batch.records:
            if self._stopping or not lane.alive:
                return
            try:
                subtask = codec.decode(record.value or b"", Subtask)
                key = parse_subtask_id(subtask.id).request
            except Malformed as error:
                lane.fail(record, Failure(code=error.code, message=str(error)))
                continue
            join = key.encode()
            service = self._services.get((side, subtask.capability))
            failure = self._objection(subtask, key, service)
            if failure is not None:
                refused.add(record.offset, self._partials.failed(subtask, join, failure))
                continue
            assert service is not None
            if self._claimed.concerns(record.value or b"", subtask):
                refused.settle()
                then = partial(self._fetched, lane, record, subtask, join, service)
                await self._claimed.fetch(subtask, lane, then)
                continue
            work = taken(lane, record, subtask, join, service.backend, subtask.inputs)
            if isinstance(work, Failure):
                refused.add(record.offset, self._partials.failed(subtask, join, work))
                continue
            if not service.room(work.size):
                refused.settle()
                if not await service.wait_for_room(work.size, lane):
                    return
            service.put(work)
        refused.settle()

    async def _fetched(
        self,
        lane: Lane,
        record: Record,
        subtask: Subtask,
        join: bytes,
        service: Service,
        inputs: dict[str, Any] | Failure,
    ) -> None:
        """Queue a subtask whose inputs lay elsewhere."""
        work: Work | Failure = (
            inputs
            if isinstance(inputs, Failure)
            else taken(lane, record, subtask, join, service.backend, inputs)
        )
        if isinstance(work, Failure):
            lane.settle((record.offset,), (self._partials.failed(subtask, join, work),))
        elif await service.wait_for_room(work.size, lane) and not self._stopping:
            service.put(work)

    def _objection(self, subtask: Subtask, key: str, service: Service | None) -> Failure | None:
        """Why a subtask of the request `key` reaches no model, None where it may."""
        if key in self._cancelled:
            metrics.CANCELLED.labels("read").inc()
            return CANCELLED
        if subtask.max_cost > 0.0 and not self._uncounted_told:
            self._uncounted_told = True
            log.info(
                "worker %s runs what may cost up to %g, and its rules set no budget: no ceiling counts it. "
                "Start it with the --rules and --redis of the router if there is one",
                self.name,
                subtask.max_cost,
            )
        if service is None:
            here = ", ".join(sorted(name for _, name in self._services))
            text = f"worker {self.name} does not offer {subtask.capability!r} on this topic; it offers {here}"
            return Failure(code="unknown_capability", message=text)
        if subtask.deadline <= self._clock.now():
            return Failure(
                code="deadline_exceeded", message="the deadline had passed when the worker read the subtask"
            )
        return None

    def _finish(self, run: Run) -> None:
        """Write a run's answers, origin by origin."""
        self._telemetry.finished(run)
        keeps = self._claimed.keeps(run.card)
        grouped: dict[int, tuple[Origin, list[int], list[Outgoing]]] = {}
        for work, answer in zip(run.works, run.answers, strict=True):
            lane = work.lane
            if not lane.alive:
                continue
            timings = Timings(queue_ms=float(max(0, run.began - work.appended)), service_ms=run.service_ms)
            # Who asks over HTTP is sent no claim.
            write = self._partials.small if keeps and not hasattr(lane, "lost") else self._partials.answered
            output = write(work.subtask, work.join, answer, run.card, timings)
            if output is None:
                self._claimed.keep(work, answer, run.card, timings)
                continue
            group = grouped.get(id(lane))
            if group is None:
                group = grouped[id(lane)] = (lane, [], [])
            group[1].append(work.offset)
            group[2].append(output)
        for lane, offsets, outputs in grouped.values():
            lane.settle(offsets, outputs)
