"""Where others than Kafka ask a worker: the same queues, batches, limits and prices."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from schemas import codec
from schemas.cards import Card
from schemas.messages import Failure, Partial, Side, Subtask
from streams.delivery import Clock, Outgoing
from workers.backends import Row
from workers.errors import UnknownCapability, WorkerError
from workers.faults import told
from workers.service import Service
from workers.sizes import weight
from workers.work import work_of
from workers.worker import Worker

LONGEST_MS = 600_000


class Full(WorkerError):
    """The queue of a capability has no room; `retry_after_s` is when it may have."""

    def __init__(self, capability: str, retry_after_s: float) -> None:
        super().__init__(f"{capability} has no room for more now; ask again in {retry_after_s:g} s")
        self.retry_after_s = retry_after_s


class Closed(WorkerError):
    """The worker is not ready yet, or stops."""


class Asker:
    """Somebody who waits for one answer."""

    def __init__(self) -> None:
        self.alive = True
        self.answer: asyncio.Future[Partial] = asyncio.get_running_loop().create_future()

    def settle(self, _offsets: Sequence[int], outputs: Sequence[Outgoing]) -> None:
        if not self.answer.done():
            self.answer.set_result(codec.decode(outputs[-1].value or b"", Partial))

    def lost(self) -> None:
        """The worker stops, and nobody else will answer."""
        if not self.answer.done():
            self.answer.set_exception(Closed("the worker stops; ask again in a second"))
            self.answer.exception()  # read once: a caller that went meanwhile never does


class Desk:
    """Asks the services of `workers`."""

    def __init__(self, workers: Sequence[Worker], clock: Clock) -> None:
        self._workers = tuple(workers)
        self._clock = clock

    def cards(self) -> tuple[Card, ...]:
        """What is served now; the sides and capabilities stay the same, their cards change with versions."""
        return tuple(card for worker in self._workers for card in worker.cards)

    def names(self) -> tuple[tuple[Side, str], ...]:
        """Side and capability of all that is served."""
        return tuple((card.side, card.capability) for card in self.cards())

    def waits_for(self) -> dict[str, str]:
        """What is served here and refuses its rows, as the service that it asks was away so far, and why."""
        offers = (offer for worker in self._workers for offer in worker.offers() if offer.live.waits_for)
        return {f"{offer.card.side}/{offer.card.capability}": offer.live.waits_for for offer in offers}

    def hung_s(self, now: float) -> float:
        """For how long the run that is worst off has been at it; see Worker."""
        return max(worker.hung_s(now) for worker in self._workers)

    def hanging(self, now: float, limit_s: float) -> tuple[str, ...]:
        """What has been at one run for longer than `limit_s`, by its topic."""
        return tuple(worker.topics[0] for worker in self._workers if worker.hung_s(now) > limit_s)

    @property
    def ready(self) -> bool:
        """Whether every worker takes calls."""
        return all(worker.ready for worker in self._workers)

    async def ask(
        self,
        side: str,
        capability: str,
        row: Row,
        *,
        subtask: str,
        size: int,
        deadline_ms: int,
        max_batch: int | None = None,
        traceparent: str | None = None,
    ) -> Partial:
        """The answer to one row, an error too, as a worker would publish it; `subtask` is its id, unique
        among those under way and kept over repetitions. It is there within `deadline_ms` and a little.

        Where the caller is cancelled, a row that waits is dropped.

        Raises:
            UnknownCapability: nobody serves it here.
            Full: no room for `size` bytes, or for one more row.
            Closed: the worker is not ready, or stops.
        """
        worker, service = self._found(side, capability)
        if not worker.ready:
            raise Closed("the worker is not ready: it loads its models, or stops; ask again in a second")
        size = max(size, weight(row.inputs))
        if not service.room(size):
            raise Full(f"{side}/{capability}", 1.0)
        deadline = self._clock.now() + min(deadline_ms, LONGEST_MS)
        asked = Subtask(
            id=subtask,
            capability=capability,
            inputs=row.inputs,
            params=row.params,
            deadline=deadline,
            max_batch=max_batch,
            max_cost=worker.bound(service) or 0.0,
            traceparent=traceparent,
        )
        failure = _refusal(worker, service, asked)
        if failure is not None:
            return Partial(subtask=subtask, deadline=deadline, error=failure)
        return await self._answered(service, asked, row, size, deadline_ms)

    async def _answered(
        self, service: Service, asked: Subtask, row: Row, size: int, deadline_ms: int
    ) -> Partial:
        asker = Asker()
        try:
            now = self._clock.now()
            work = work_of(asker, asked, row, service.backend, offset=0, appended=now, join=b"")
            work.size = size
            service.put(work)
        except Exception as error:  # noqa: BLE001 - a backend's `kin` may raise anything
            failure = told(error, asked.capability)
            return Partial(subtask=asked.id, deadline=asked.deadline, error=failure)
        try:
            async with asyncio.timeout(min(deadline_ms, LONGEST_MS) / 1000.0):
                return await asker.answer
        except TimeoutError:
            late = Failure(code="deadline_exceeded", message="the model gave no answer by the deadline")
            return Partial(subtask=asked.id, deadline=asked.deadline, error=late)
        finally:
            asker.alive = False
            if not asker.answer.done() or asker.answer.cancelled():
                service.forget(asker)

    def _found(self, side: str, capability: str) -> tuple[Worker, Service]:
        for worker in self._workers:
            service = worker.service(side, capability)
            if service is not None:
                return worker, service
        known = ", ".join(sorted("/".join(name) for name in self.names()))
        raise UnknownCapability(f"{side}/{capability} is not served here; known are {known}")


def _refusal(worker: Worker, service: Service, asked: Subtask) -> Failure | None:
    """Why a call may not be paid for: no bound, where a budget is in force."""
    if worker.bound(service) is None and worker.has_budget:
        text = (
            f"{asked.capability} has no upper bound of cost, and a budget is in force; price it in the rules"
        )
        return Failure(code="over_budget", message=text)
    return None
