"""Nobody works: workers gone, and joins that pile up behind them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

from tests.faults.harness.cluster import Cluster, cluster, usual
from tests.faults.harness.collector import Collector
from tests.faults.harness.load import Load, Sent, request
from tests.faults.harness.report import Report, report_of
from tests.faults.harness.runs import SETTLE_S, Size, judge, under_load, warm_up
from tests.faults.harness.topic_records import ends_of

SETTLED_S = 60.0


async def no_workers(folder: Path, size: Size) -> Report:
    """All workers die under load and stay away: everything is answered, with errors from then on."""
    async with cluster(folder) as at:
        names = await usual(at)

        async def faults(at: Cluster, _: Sent) -> None:
            await asyncio.sleep(size.lasts_s / 3)
            at.mark("kill", "all workers")
            workers = [name for name in names if name.startswith(("local", "cloud"))]
            await asyncio.gather(*(at.children.stop(name, 9) for name in workers))

        report = judge(await under_load("no-workers", at, size, faults), ok_share=0.0)
    report.expect(report.error > 0, "no request was answered with an error")
    silent = report.requests - report.ok - report.partial - report.error
    report.expect(silent == 0, f"{silent} requests have no answer of any kind")
    return report


async def open_joins(folder: Path, size: Size) -> Report:
    """Thousands of joins are open when the aggregator is killed; it is killed again at a quarter answered."""
    async with cluster(folder) as at:
        names = await usual(at)
        async with Collector(at.bootstrap) as collector, Load(at.bootstrap) as load:
            await warm_up(load, collector)
            workers = [name for name in names if name.startswith("local")]
            for name in workers:
                at.children.freeze(name)
            before = sum((await ends_of(at.bootstrap, "joins")).values())
            await load.run(_waiting(size.deadline_ms), size.requests, size.rate)
            opened = await _until_open(at, before + size.requests)
            at.mark("kill", "aggregator-0")
            at.children.kill("aggregator-0")
            await asyncio.sleep(3.0)
            for name in workers:
                at.children.thaw(name)
            await _until_answered(collector, size.requests // 4)
            at.mark("kill", "aggregator-0")
            at.children.kill("aggregator-0")
            await collector.until(load.sent.acknowledged, size.deadline_ms / 1000 + 15.0)
            await asyncio.sleep(SETTLE_S)
            report = await report_of("open-joins", at, load.sent, collector.answers, size.deadline_ms)
    report.more["open_at_the_kill"] = opened - before
    report.expect(opened - before >= size.requests, f"only {opened - before} joins were open at the kill")
    return judge(report)


def _waiting(deadline_ms: int) -> Iterator[tuple[str, bytes]]:
    number = 0
    while True:
        yield request(f"r-{number}", "waiting", number, deadline_ms)
        number += 1


async def _until_open(at: Cluster, wanted: int) -> int:
    until = time.monotonic() + SETTLED_S
    while (there := sum((await ends_of(at.bootstrap, "joins")).values())) < wanted:
        if time.monotonic() > until:
            break
        await asyncio.sleep(0.3)
    await asyncio.sleep(1.0)
    return there


async def _until_answered(collector: Collector, wanted: int) -> None:
    until = time.monotonic() + SETTLED_S
    while sum(name.startswith("r-") for name in collector.answers) < wanted and time.monotonic() < until:
        await asyncio.sleep(0.02)
