"""Brokers that die."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.faults.harness.cluster import Cluster, cluster, usual
from tests.faults.harness.load import Sent
from tests.faults.harness.report import Report
from tests.faults.harness.runs import Size, judge, under_load

DOWN_S = 1.0
AFTER_S = 2.0


async def broker_restart(folder: Path, size: Size) -> Report:
    """The only broker is killed and comes back."""
    async with cluster(folder) as at:
        await usual(at)

        async def faults(at: Cluster, _: Sent) -> None:
            await asyncio.sleep(size.lasts_s / 3)
            fault = at.mark("kill", "broker")
            await at.kafka.kill(1)
            await asyncio.sleep(DOWN_S)
            await at.kafka.restart(1)
            fault.until = at.mark("back", "broker").at
            await asyncio.sleep(AFTER_S)

        return judge(await under_load("broker", at, size, faults, to_the_end=True))


async def broker_lost(folder: Path, size: Size) -> Report:
    """One of three brokers is killed for good."""
    async with cluster(folder, brokers=3) as at:
        await usual(at)

        async def faults(at: Cluster, _: Sent) -> None:
            await asyncio.sleep(size.lasts_s / 3)
            at.mark("kill", "broker")
            await at.kafka.kill(3)

        return judge(await under_load("brokers", at, size, faults))
