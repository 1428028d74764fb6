"""Roles that are killed, and roles that stand still for a while."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.faults.harness.cluster import Cluster, cluster, usual
from tests.faults.harness.load import Sent
from tests.faults.harness.report import Report
from tests.faults.harness.runs import Size, judge, kill_now_and_then, under_load

EVERY_S = 3.0
FROZEN_S = 15.0


async def random_kills(folder: Path, size: Size) -> Report:
    """SIGKILL of a router, aggregator or worker every 3 s, each started again after 0.5 s, all in slots."""
    return await _kills("kills", folder, size, static=True)


async def random_kills_without_slots(folder: Path, size: Size) -> Report:
    """The same with dynamic members: Kafka waits for a whole session before it gives up one that died."""
    return await _kills("kills-dynamic", folder, size, static=False)


async def _kills(scenario: str, folder: Path, size: Size, *, static: bool) -> Report:
    async with cluster(folder) as at:
        names = await usual(at, static=static)

        async def faults(at: Cluster, _: Sent) -> None:
            await kill_now_and_then(at, names, size.lasts_s, EVERY_S, size.seed)

        return judge(await under_load(scenario, at, size, faults))


async def freeze_router(folder: Path, size: Size) -> Report:
    """One of two routers stands still for 15 s."""
    return await _freeze(folder, size, "router-0")


async def freeze_aggregator(folder: Path, size: Size) -> Report:
    """One of two aggregators stands still for 15 s: it wakes up as a zombie."""
    return await _freeze(folder, size, "aggregator-0")


async def freeze_worker(folder: Path, size: Size) -> Report:
    """One of two local workers stands still for 15 s."""
    return await _freeze(folder, size, "local-0")


async def _freeze(folder: Path, size: Size, name: str) -> Report:
    async with cluster(folder) as at:
        await usual(at, routers=2, aggregators=2)

        async def faults(at: Cluster, _: Sent) -> None:
            until = asyncio.get_running_loop().time() + size.lasts_s
            await asyncio.sleep(3.0)
            while True:
                fault = at.mark("freeze", name)
                at.children.freeze(name)
                await asyncio.sleep(FROZEN_S)
                at.children.thaw(name)
                at.mark("thaw", name)
                fault.until = at.faults[-1].at
                if asyncio.get_running_loop().time() + 2 * FROZEN_S > until:
                    return
                await asyncio.sleep(FROZEN_S)

        return judge(await under_load(f"freeze {name}", at, size, faults))
