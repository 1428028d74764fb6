"""What changes under load: Redis goes and comes back; roles join and leave."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from streams.stores.redis import PREFIX
from tests.helpers.caller import Caller, new_id
from tests.helpers.spine import DEMO, Spine
from tests.integration.spine.samples import SURE, UNSURE

pytestmark = pytest.mark.integration

RATE = 25.0
STOP_S = 12.0


class Load:
    """Requests at a steady rate; all must be answered `ok`, once."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.sent: list[str] = []

    async def run(self) -> None:
        while True:
            request = {"id": new_id("load"), "task": "intent", "text": (SURE, UNSURE)[len(self.sent) % 2]}
            await self._caller.send(json.dumps(request).encode(), partition=len(self.sent) % 3)
            self.sent.append(str(request["id"]))
            await asyncio.sleep(1 / RATE)

    async def verify(self) -> None:
        for request_id in self.sent:
            assert (await self._caller.answer(request_id)).status == "ok"
        await asyncio.sleep(0.5)
        assert [name for name in self.sent if len(self._caller.all_of(name)) != 1] == []


@contextlib.asynccontextmanager
async def load(caller: Caller) -> AsyncIterator[Load]:
    made = Load(caller)
    task = asyncio.create_task(made.run())
    try:
        yield made
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    await made.verify()


async def remembered(spine: Spine, request_id: str) -> bool:
    assert spine.redis is not None
    async with Redis.from_url(spine.redis.url) as redis:
        return bool(await redis.exists(f"{PREFIX}{request_id}"))


async def test_redis_killed_under_load(spine: Spine, caller: Caller) -> None:
    assert spine.redis is not None
    known = {"id": new_id(), "task": "intent", "text": SURE}
    await caller.ask(known)
    assert await remembered(spine, str(known["id"]))
    async with load(caller) as asked:
        await asyncio.sleep(0.5)
        await asyncio.to_thread(spine.redis.kill)
        try:
            before = len(asked.sent)
            for text in (SURE, UNSURE):  # the same again, and another under its id
                await caller.send(json.dumps(known | {"text": text}).encode())
            late = {"id": new_id(), "task": "intent", "text": UNSURE}
            for _ in range(2):
                await caller.ask(late)
            async with asyncio.timeout(20):
                while not any(name.startswith(f"{known['id']}~") for name in caller.ids()):
                    await asyncio.sleep(0.05)
            await asyncio.sleep(0.5)
            assert len(asked.sent) > before
        finally:
            await asyncio.to_thread(spine.redis.start)
        async with asyncio.timeout(20):
            while not await remembered(spine, asked.sent[-1]):
                await asyncio.sleep(0.1)
    (conflict,) = [name for name in caller.ids() if name.startswith(f"{known['id']}~")]
    assert [answer.code for answer in caller.all_of(conflict)] == ["id_conflict"]
    assert len(caller.all_of(str(known["id"]))) == 1
    assert len(caller.all_of(str(late["id"]))) == 1


async def test_roles_join_and_leave_under_load(spine: Spine, caller: Caller) -> None:
    async with load(caller):
        guests = [
            spine.start(*words, rules=DEMO / "rules.json")
            for words in (("router",), ("aggregator",), ("worker", "--side", "local"))
        ]
        for guest in guests:
            await asyncio.to_thread(guest.wait_ready)
        await asyncio.sleep(1)
        for guest in guests:
            began = time.monotonic()
            assert await asyncio.to_thread(guest.terminate) == 0, guest.said
            assert time.monotonic() - began < STOP_S
