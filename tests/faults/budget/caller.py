"""One process that reserves, begins, pays and settles until it is killed or told to stop."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import deque
from pathlib import Path

from streams.budget import Begin, Paid, RedisBudget, Reservation
from streams.stores import RedisLink, StoreUnavailable
from tests.faults.budget.money import OWN, RULE, TENANTS

STOP = "stop"
"""A file of this name beside the offset tells every caller to settle and end."""
LANES = 4
LIFE_MS = (1500, 4000)
SKEW_MS = 300
COST = (100, 1000)


class Caller:
    """Jobs in LANES at once. `offset` is a file with the ms by which this world is ahead of the real one."""

    def __init__(self, name: str, url: str, port: int, offset: Path, harness: int) -> None:
        self._name = name
        self._port = port
        self._offset = offset
        self._skew = random.randint(-SKEW_MS, SKEW_MS)
        self._budget = RedisBudget(RedisLink(url), RULE, OWN)
        self._unsettled: deque[Paid] = deque()
        self._jobs = 0
        self._lanes = LANES  # still at work
        self._stop = offset.with_name(STOP)
        self._harness = harness
        self.stopping = False

    def now(self) -> int:
        return int(time.time() * 1000) + int(self._offset.read_text()) + self._skew

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(LANES):
                group.create_task(self._lane())
            group.create_task(self._settle_on())
        await self._budget.close()

    async def _lane(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        while not self.stopping:
            try:
                await self._job(reader, writer)
            except StoreUnavailable:
                await asyncio.sleep(0.05)
        writer.close()
        self._lanes -= 1

    async def _job(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._jobs += 1
        job = f"{self._name}.{self._jobs}"
        tenant = random.choice(TENANTS)
        subtask = f"{tenant}/{job}/s/cloud/0"
        micros = random.randint(*COST)
        expires = self.now() + random.randint(*LIFE_MS)
        dice = random.random()
        wanted = [Reservation(subtask, tenant, micros / 1e6, expires)]
        if dice < 0.9 and await self._budget.reserve(wanted, self.now()) != [True]:
            await asyncio.sleep(0.03)
            return
        if dice < 0.05:
            return  # never begun, never released
        if dice < 0.1:
            await self._budget.release([subtask], self.now())
            return
        for execution in range(2 if dice > 0.85 else 1):
            nonce = f"{job}.{execution}"
            ask = Begin(subtask, nonce, tenant, micros / 1e6, expires)
            if await self._begun(ask):
                actual = random.randint(0, micros)
                await self._pay(reader, writer, nonce, actual)
                await self._settle([Paid(subtask, nonce, actual / 1e6)])

    async def _begun(self, ask: Begin) -> bool:
        try:
            return await self._budget.begin([ask], self.now()) == [True]
        except StoreUnavailable:
            self._unsettled.append(Paid(ask.subtask, ask.nonce, 0.0))
            raise

    async def _pay(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, nonce: str, micros: int
    ) -> None:
        writer.write(f"POST /charge?nonce={nonce}&micros={micros} HTTP/1.1\r\nhost: api\r\n\r\n".encode())
        await reader.readuntil(b"ok")

    async def _settle(self, paid: list[Paid]) -> None:
        try:
            await self._budget.settle(paid, self.now())
            if random.random() < 0.1:
                await self._budget.settle(paid, self.now())  # heard twice
        except StoreUnavailable:
            self._unsettled.extend(paid)

    async def _settle_on(self) -> None:
        while self._lanes or self._unsettled:
            await asyncio.sleep(0.2)
            os.kill(
                self._harness, 0
            )  # raises where the harness was killed: nobody else would end this process
            self.stopping = self._stop.exists()
            some = list(self._unsettled)
            self._unsettled.clear()
            await self._settle(some)


async def _main(name: str, url: str, port: int, offset: str, harness: int) -> None:
    await Caller(name, url, port, Path(offset), harness).run()


def serve(name: str, url: str, port: int, offset: str, harness: int) -> None:
    """What a process does from its start; `harness` is the process id of who started it."""
    asyncio.run(_main(name, url, port, offset, harness))
