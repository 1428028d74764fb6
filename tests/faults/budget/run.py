"""Processes that pay from one budget, killed at random, beside a Redis that is killed as well.

A day of this world lasts `day_s`: the harness moves every caller's clock on by the rest of it. Of each day,
just before its books are closed, `spent - charged` must be what payments of unknown outcome were allowed.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import time
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

from redis import Redis

from streams.budget import RedisBudget, Reservation, Spend
from streams.budget.ledger import WINDOW_MS
from streams.budget.redis import KEYS
from streams.stores import RedisLink, StoreUnavailable
from tests.faults.budget.api import PaidApi
from tests.faults.budget.caller import SKEW_MS, STOP, serve
from tests.faults.budget.money import OWN, RULE
from tests.helpers.redis import WheelServer

FORKS = multiprocessing.get_context("forkserver")
"""Processes of their own, forked from one that has imported everything: a start costs next to nothing."""
FORKS.set_forkserver_preload(["tests.faults.budget.caller"])
CALLERS = 8
POLL_S = 0.05
DRAIN_MS = 600_000
QUIET_S = 1.5
"""So long the server is left alone before the books of a day are read: late settlings must have come in."""


@dataclass
class Report:
    """What a run did and found; amounts in millionths."""

    seconds: float = 0.0
    kills: int = 0
    redis_kills: int = 0
    redis_pauses: int = 0
    days: int = 0
    polls: int = 0
    payments: int = 0
    charged: int = 0
    spent: int = 0
    unknown: int = 0
    unknown_excess: int = 0
    fullest: float = 0.0
    wrong: list[str] = field(default_factory=list)


class Run:
    """One run; everything it starts ends with `whole`."""

    def __init__(
        self, folder: Path, *, seconds: float, day_s: float, kill_every_s: float, redis_every_s: float
    ):
        self.report = Report()
        self._seconds, self._day_s = seconds, day_s
        self._kill_every_s, self._redis_every_s = kill_every_s, redis_every_s
        self._server = WheelServer(folder, durable=True)
        self._offset = folder / "offset"
        self._offset.write_text("0")
        self._callers: list[tuple[str, BaseProcess]] = []
        self._killed: set[str] = set()
        self._started = 0
        self._calm = False  # nobody touches the server now

    async def whole(self) -> Report:
        self._server.start()
        began = time.monotonic()
        try:
            with PaidApi() as api:
                self._api = api
                link = RedisLink(self._server.url, timeout_s=2.0)
                self._budget = RedisBudget(link, RULE, OWN)
                await self._budget.spend(self._now())
                self._callers = [self._caller() for _ in range(CALLERS)]
                chaos = [asyncio.create_task(work()) for work in (self._kill, self._poll, self._break)]
                await self._days(chaos)
                await self._end(chaos)
                await self._budget.close()
        finally:
            for _, process in self._callers:
                process.kill()
                process.join(10)
            self._server.kill()
        self.report.seconds = round(time.monotonic() - began, 1)
        return self.report

    def _now(self) -> int:
        return int(time.time() * 1000) + int(self._offset.read_text())

    def _day(self) -> int:
        return self._now() // WINDOW_MS

    def _caller(self) -> tuple[str, BaseProcess]:
        self._started += 1
        name = f"c{self._started}"
        args = (name, self._server.url, self._api.port, str(self._offset), os.getpid())
        process = FORKS.Process(target=serve, args=args, daemon=True)
        process.start()
        return name, process

    async def _days(self, chaos: list[asyncio.Task[None]]) -> None:
        self._first = self._day()
        until = time.monotonic() + self._seconds
        while time.monotonic() < until:
            await asyncio.wait(chaos, timeout=self._day_s, return_when=asyncio.FIRST_COMPLETED)
            for task in chaos:
                if task.done():
                    task.result()
            if self._day() > self._first:
                await self._rest()
                self._account(self._day() - 1, await self._budget.spend(self._now() - WINDOW_MS))
            # Just before the edge: callers whose clocks differ stand on both sides of it for a while.
            self._jump(WINDOW_MS - self._now() % WINDOW_MS - SKEW_MS // 2)
            self._calm = False

    def _jump(self, ms: int) -> None:
        aside = self._offset.with_suffix(".new")
        aside.write_text(str(int(self._offset.read_text()) + ms))
        aside.replace(self._offset)

    async def _rest(self) -> None:
        self._calm = True
        while not await self._up():
            await asyncio.sleep(0.05)
        await asyncio.sleep(QUIET_S)

    async def _up(self) -> bool:
        try:
            await self._budget.spend(self._now())
        except StoreUnavailable:
            return False
        return True

    async def _end(self, chaos: list[asyncio.Task[None]]) -> None:
        await self._rest()
        for task in chaos:
            task.cancel()
        await asyncio.gather(*chaos, return_exceptions=True)
        self._offset.with_name(STOP).touch()
        for name, process in self._callers:
            await asyncio.to_thread(process.join, 20)
            if process.exitcode != 0:
                self.report.wrong.append(f"caller {name} ended with {process.exitcode}")
        self._jump(DRAIN_MS)
        today = self._day()
        spend = await self._budget.spend(self._now())
        if today > self._first:
            self._account(today - 1, await self._budget.spend(self._now() - WINDOW_MS))
        self._account(today, spend)
        await self._no_phantom(spend)
        found = self.report
        found.payments, found.charged = len(self._api.charged), sum(self._api.charged.values())
        if found.spent - found.charged != found.unknown_excess:
            found.wrong.append("what was spent and not charged is not what payments of unknown outcome hold")

    async def _no_phantom(self, spend: Spend) -> None:
        """What is left can be reserved to the last millionth, and not one more."""
        left = min(spend.total.left or 0.0, spend.tenants["a"].left or 0.0)
        expires = self._now() + 60_000
        for number, cost, expected in ((1, left + 0.000_001, False), (2, left, True)):
            wanted = [Reservation(f"end/{number}/s/cloud/0", "a", round(cost, 6), expires)]
            if cost > 0 and await self._budget.reserve(wanted, self._now()) != [expected]:
                self.report.wrong.append(f"with {left} left a reservation of {cost} was not {expected}")

    def _account(self, day: int, spend: Spend) -> None:
        """Close the books of `day`: nothing is reserved; every unknown outcome is a killed caller's."""
        found = self.report
        found.days += 1
        found.spent += micros(spend.total.spent)
        self._check(spend)
        if spend.window != day * WINDOW_MS:
            found.wrong.append(f"asked for day {day} and got {spend.window // WINDOW_MS}")
        if spend.total.reserved or any(each.reserved for each in spend.tenants.values()):
            found.wrong.append(f"day {day} closes with {spend.total.reserved} reserved")
        with Redis.from_url(self._server.url, decode_responses=True) as redis:
            entries = dict(redis.hgetall(KEYS[1]))
        for key, packed in entries.items():
            state, _, window, amount, _ = packed.split("|")
            if state != "unknown" or int(window) != day:
                continue
            length, _, rest = key[1:].partition(":")
            nonce = rest[: int(length)]
            found.unknown += 1
            found.unknown_excess += int(amount) - self._api.charged.get(nonce, 0)
            if nonce.split(".")[0] not in self._killed:
                found.wrong.append(f"the outcome of {nonce} is unknown, and its caller was not killed")

    def _check(self, spend: Spend) -> None:
        found = self.report
        for tenant, balance in (("all", spend.total), *spend.tenants.items()):
            assert balance.limit is not None
            used = micros(balance.spent) + micros(balance.reserved)
            if used > micros(balance.limit):
                found.wrong.append(f"{used} of {micros(balance.limit)} millionths in use by {tenant}")
        assert spend.total.limit is not None
        found.fullest = max(found.fullest, (spend.total.spent + spend.total.reserved) / spend.total.limit)

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(POLL_S)
            try:
                for at in (self._now(), self._now() - WINDOW_MS):
                    self._check(await self._budget.spend(at))
                    self.report.polls += 1
            except StoreUnavailable:
                continue

    async def _kill(self) -> None:
        while True:
            await asyncio.sleep(random.expovariate(1 / self._kill_every_s))
            index = self._paying() if random.random() < 0.5 else random.randrange(CALLERS)
            name, process = self._callers[index]
            if process.exitcode is not None:
                self.report.wrong.append(f"caller {name} ended by itself with {process.exitcode}")
            # All of it before the next wait: this task may be cancelled there.
            process.kill()
            self._killed.add(name)
            self._callers[index] = self._caller()
            self.report.kills += 1
            await asyncio.to_thread(process.join, 10)

    def _paying(self) -> int:
        """A caller in the midst of a payment, where there is one: few random kills of a short run hit one."""
        busy = {nonce.split(".")[0] for nonce in tuple(self._api.open)}
        found = [index for index, (name, _) in enumerate(self._callers) if name in busy]
        return random.choice(found or range(CALLERS))

    async def _break(self) -> None:
        while True:
            await asyncio.sleep(random.expovariate(1 / self._redis_every_s))
            if self._calm:
                continue
            if random.random() < 0.5:
                self._server.kill()
                await asyncio.sleep(random.uniform(0.1, 0.8))
                await asyncio.to_thread(self._server.start)
                self.report.redis_kills += 1
            else:
                self._server.pause()
                await asyncio.sleep(random.uniform(0.1, 0.8))
                self._server.resume()
                self.report.redis_pauses += 1


def micros(amount: float) -> int:
    return round(amount * 1_000_000)
