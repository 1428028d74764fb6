"""Payloads that lie elsewhere: the claims of a subtask's inputs before its model, and outputs too large for a
record after it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from schemas.cards import Card
from schemas.claims import as_value
from schemas.errors import Malformed
from schemas.messages import Claim, Failure, Side, Subtask, Timings
from schemas.values import least_size
from streams.claims import (
    MAX_OBJECT_BYTES,
    ClaimError,
    Objects,
    ObjectUnreadable,
    StoreAway,
)
from streams.claims.loading import holds_claims, load, size_of_claims, swapped
from streams.claims.room import Room
from streams.claims.values import object_of
from streams.delivery import Clock, Lane
from streams.delivery.claimed import may_hold_claims
from workers.backends import Answer
from workers.partials import Partials
from workers.work import Work

log = logging.getLogger(__name__)

MOST_AT_ONCE = 32
WAIT_S = 10.0
"""What reading or writing the objects of one subtask may take."""
LEAST_WAIT_S = 0.1
_INPUTS = "claim"

Then = Callable[[dict[str, Any] | Failure], Awaitable[None]]


class Claimed:
    """Reads and keeps objects for one worker, beside its queues. `most` bytes of inputs are in memory here at
    once; `unwritten` counts those of outputs."""

    def __init__(self, objects: Objects, partials: Partials, clock: Clock, most: int) -> None:
        self._objects = objects
        self._partials = partials
        self._clock = clock
        self._room = Room(most)
        self._places = Room(MOST_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self.unwritten = 0

    def concerns(self, value: bytes, subtask: Subtask) -> bool:
        """Whether any input of the subtask lies elsewhere."""
        return may_hold_claims(value) and (subtask.claim is not None or holds_claims(subtask.inputs))

    async def fetch(self, subtask: Subtask, lane: Lane, then: Then) -> None:
        """Call `then` with the inputs once they are here, or with why they are not; waits while there is no
        room for them."""
        inputs = subtask.inputs
        if subtask.claim is not None:
            inputs = {**inputs, _INPUTS: as_value(subtask.claim)}
        size = min(size_of_claims(inputs), MAX_OBJECT_BYTES)
        if not await self._places.take(1, lambda: lane.alive):
            return
        if not await self._room.take(size, lambda: lane.alive):
            self._places.give(1)
            return
        side: Side = "cloud" if lane.topic.startswith("cloud.") else "local"

        async def run() -> None:
            await then(await self._read(subtask, inputs, side))

        def done() -> None:
            self._places.give(1)
            self._room.give(size)

        self._own(run(), done)

    def keeps(self, card: Card) -> bool:
        """Whether there is a store for the outputs of a model."""
        return self._objects.at(card.side) is not None

    def keep(self, work: Work, answer: Answer, card: Card, timings: Timings) -> None:
        """Write the answer's output to the store of the worker's side, then the answer with its claim. Where
        that cannot be, the answer says why, or goes out in a record if it fits one after all."""
        size = least_size(answer.output, MAX_OBJECT_BYTES)

        async def run() -> None:
            try:
                claim = await self._written(work.subtask, answer.output, card.side)
                output = self._partials.claimed(work.subtask, work.join, answer, card, timings, claim)
            except (ClaimError, Malformed) as error:
                log.warning("%s: an output could not be kept: %s", card.capability, error)
                output = self._partials.answered(work.subtask, work.join, answer, card, timings, str(error))
            work.lane.settle((work.offset,), (output,))

        def done() -> None:
            self.unwritten -= size

        self.unwritten += size
        self._own(run(), done)

    async def rest(self, timeout_s: float) -> None:
        """Wait until nothing is under way, or the time is up; then end it."""
        if self._tasks:
            _, left = await asyncio.wait(set(self._tasks), timeout=timeout_s)
            for task in left:
                task.cancel()

    async def _read(self, subtask: Subtask, inputs: dict[str, Any], side: Side) -> dict[str, Any] | Failure:
        try:
            objects = self._objects if side == "local" else Objects(cloud=self._objects.cloud)
            found = await load(inputs, objects, tenant=subtask.tenant, wait_s=self._left_s(subtask))
            inputs = {name: swapped(value, found) for name, value in inputs.items()}
            if subtask.claim is not None:
                whole = inputs.pop(_INPUTS)
                if not isinstance(whole, dict):
                    raise ObjectUnreadable("the object is no map of inputs; write one in msgpack or JSON")
                inputs = {**whole, **inputs}
        except ClaimError as error:
            return Failure(code=error.code, message=f"{subtask.capability}: {error}")
        return inputs

    async def _written(self, subtask: Subtask, output: Any, side: Side) -> Claim:
        store = self._objects.at(side)
        if store is None:
            raise StoreAway("there is no object store for this side; give --objects or --cloud-objects")
        wait_s = self._left_s(subtask)
        try:
            async with asyncio.timeout(wait_s):
                data, content_type = await asyncio.to_thread(object_of, output)
                return await store.put(data, content_type=content_type, tenant=subtask.tenant)
        except TimeoutError as error:
            raise StoreAway(f"the output could not be kept within {wait_s:g} s") from error

    def _left_s(self, subtask: Subtask) -> float:
        return max(LEAST_WAIT_S, min(WAIT_S, (subtask.deadline - self._clock.now()) / 1000.0))

    def _own(self, work: Coroutine[Any, Any, None], done: Callable[[], None]) -> None:
        task = asyncio.create_task(work, name="objects of a subtask")
        self._tasks.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            done()
            if not task.cancelled() and (error := task.exception()) is not None:
                log.error("the objects of a subtask could not be dealt with", exc_info=error)

        task.add_done_callback(ended)
