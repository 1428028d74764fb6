"""Requests whose inputs lie in an object store: read before they are planned, copied before they leave.

They are planned beside all others, a few at a time: a slow store holds up no request that does not need it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from schemas.claims import INLINE_BYTES, as_value
from schemas.errors import Malformed
from schemas.messages import Claim, Failure, Request
from schemas.values import least_size
from streams.claims import MAX_OBJECT_BYTES, ClaimError, Objects, ObjectUnreadable, StoreAway
from streams.claims.loading import holds_claims, load, ship, size_of_claims
from streams.claims.room import Room
from streams.claims.values import object_of, value_of
from streams.delivery.claimed import may_hold_claims
from streams.privacy.masks import conceal
from streams.router.item import Item
from streams.router.opened import UNREAD, Opened
from streams.router.plan import Planned, Sent
from streams.router.planner import Considered, Found, Planner

log = logging.getLogger(__name__)

MOST_BYTES = 64 * 1024 * 1024
"""Objects of requests that are in the router at once."""
MOST_READ = 16 * 1024 * 1024
"""What is read of one request; with more the cloud is closed to it."""
MOST_REQUESTS = 64
WAIT_S = 3.0
"""What reading or copying may take of one request."""
LEAST_WAIT_S = 0.05
CLOSE_S = 1.0


class Claimed:
    """Looks after such requests for one router. `finish` plans one that is open, and settles it."""

    def __init__(self, objects: Objects, finish: Callable[[Item], Awaitable[None]]) -> None:
        self._objects = objects
        self._finish = finish
        self._room = Room(MOST_BYTES)
        self._places = Room(MOST_REQUESTS)
        self._tasks: set[asyncio.Task[None]] = set()

    def sorted_out(self, items: list[Item]) -> tuple[list[Item], list[Item]]:
        """The requests without claims, and those with some."""
        apart = [item for item in items if self.concerns(item)]
        if not apart:
            return items, apart
        theirs = set(map(id, apart))
        return [item for item in items if id(item) not in theirs], apart

    def concerns(self, item: Item) -> bool:
        """Whether any input of the request lies elsewhere."""
        if item.standing != "first" or not may_hold_claims(item.record.value or b""):
            return False
        request = item.admitted.request
        return request.claim is not None or holds_claims(request.inputs) or holds_claims(request.params)

    async def take(self, item: Item, planner: Planner, now: int) -> None:
        """Look after `item` from now on; waits while there is no room for what it holds."""
        request = item.admitted.request
        size = size_of_claims(request.inputs) + (0 if request.claim is None else request.claim.size)
        size = min(size, MOST_READ)
        lane = item.lane
        if not await self._places.take(1, lambda: lane.alive):
            return
        if not await self._room.take(size, lambda: lane.alive):
            self._places.give(1)
            return
        lane.absorb(item.record.offset)
        task = asyncio.create_task(self._run(item, planner, now), name="a request with claims")
        self._tasks.add(task)

        def done(ended: asyncio.Task[None]) -> None:
            self._tasks.discard(ended)
            self._room.give(size)
            self._places.give(1)

        task.add_done_callback(done)

    async def rest(self, timeout_s: float | None = None) -> None:
        """Wait until nothing is under way, or the time is up."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=timeout_s)

    async def close(self) -> None:
        """End what is under way: whoever owns the partitions next reads it again."""
        for task in self._tasks:
            task.cancel()
        await self.rest(CLOSE_S)

    async def shipped(self, item: Item) -> Planned:
        """The plan of `item` with claims of copies in the cloud's store in what is sent there.

        Raises:
            ClaimError: a copy cannot be made.
        """
        planned, opened, considered = item.planned, item.opened, item.considered
        assert planned is not None
        assert opened is not None
        assert considered is not None
        first: list[Sent] = []
        for sent in planned.first:
            inputs = sent.subtask.inputs
            if sent.side == "cloud" and sent.subtask.id not in item.kept and holds_claims(inputs):
                inputs = await ship(
                    inputs,
                    opened.found,
                    self._objects,
                    tenant=sent.subtask.tenant,
                    wait_s=WAIT_S,
                    seal=lambda value: conceal(value, considered.mask),
                )
                sent = sent._replace(subtask=msgspec.structs.replace(sent.subtask, inputs=inputs))
            first.append(sent)
        return planned._replace(first=tuple(first))

    async def _run(self, item: Item, planner: Planner, now: int) -> None:
        try:
            await self._open(item, planner, now)
            await self._finish(item)
        except Exception as error:
            log.exception("a request with claims failed")
            failure = Failure(code="handler_error", message=f"the handler failed: {type(error).__name__}")
            item.lane.fail(item.record, failure)
        finally:
            item.opened = None

    async def _open(self, item: Item, planner: Planner, now: int) -> None:
        """Take the claim of the inputs apart, and read those among them where the cloud may get them."""
        try:
            if item.admitted.request.claim is not None:
                async with asyncio.timeout(WAIT_S):
                    request = await self._apart(item.admitted.request)
                item.admitted = msgspec.structs.replace(item.admitted, request=request)
        except (ClaimError, Malformed) as error:
            item.failure = Failure(code="object_missing", message=f"the request's claim: {error}")
            return
        except TimeoutError:
            text = f"the request's claim could not be read within {WAIT_S:g} s; try again"
            item.failure = Failure(code="object_missing", message=text)
            return
        found = planner.find(item.admitted, now)
        if isinstance(found, Found):
            item.opened = await self._opened(found, now)

    async def _opened(self, found: Found, now: int) -> Opened | None:
        request = found.admitted.request
        if holds_claims(request.params):
            return UNREAD
        if not holds_claims(request.inputs):
            return None
        if self._objects.cloud is None:
            return Opened(closed="no_cloud_store")
        stays = all(step.side == "local" for step in found.task.steps)
        if stays or found.info.privacy.level != "normal":
            return UNREAD
        left_s = (found.info.deadline - now) / 2000.0
        try:
            values = await load(
                request.inputs,
                self._objects,
                tenant=request.tenant,
                wait_s=max(LEAST_WAIT_S, min(WAIT_S, left_s)),
                limit=MOST_READ,
            )
        except ClaimError as error:
            log.info("what a request claims was not examined, so it stays at the edge: %s", error)
            return UNREAD
        return Opened(values)

    async def _apart(self, request: Request) -> Request:
        """The request with its claim taken apart into values: small ones in place, each large one under a
        claim of its own.

        Raises:
            ClaimError: it cannot be read, or a large value cannot be kept.
            Malformed: a value that no reader could decode.
        """
        claim = request.claim
        assert claim is not None
        data = await self._objects.get(claim, tenant=request.tenant, limit=MOST_READ)
        content = await asyncio.to_thread(value_of, data, claim.content_type or _sniffed(data))
        if not isinstance(content, dict):
            raise ObjectUnreadable("the object is no map of inputs; write one in msgpack or JSON")
        inputs = {**content, **request.inputs}
        sizes = {name: least_size(value, MAX_OBJECT_BYTES) for name, value in inputs.items()}
        left = sum(sizes.values())
        for name in sorted(sizes, key=lambda name: -sizes[name]):
            if left <= INLINE_BYTES:
                break
            inputs[name] = as_value(await self._kept(inputs[name], request.tenant))
            left -= sizes[name]
        return msgspec.structs.replace(request, inputs=inputs, claim=None)

    async def _kept(self, value: Any, tenant: str | None) -> Claim:
        if self._objects.local is None:
            raise StoreAway("it holds large values, and no store is configured to keep each by itself")
        data, content_type = await asyncio.to_thread(object_of, value)
        return await self._objects.local.put(data, content_type=content_type, tenant=tenant)


def unshipped(considered: Considered) -> Considered:
    """The request with the cloud closed to what it claims."""
    return msgspec.structs.replace(considered, opened=Opened(closed="no_cloud_store"))


def _sniffed(data: bytes) -> str:
    return "application/json" if data[:1] == b"{" else "application/msgpack"
