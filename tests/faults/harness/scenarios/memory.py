"""Memory of router and aggregator over many requests."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psutil

from tests.faults.harness.cluster import Cluster, cluster, usual
from tests.faults.harness.collector import Collector
from tests.faults.harness.load import Load, Sent, mixed
from tests.faults.harness.report import Report, report_of
from tests.faults.harness.runs import SETTLE_S, Size, judge, warm_up

ROLES = ("router-0", "aggregator-0")
GROWTH = 0.05
FROM = 20_000
"""Requests after which what is remembered of the past is complete."""
OPEN = 1_000
SAMPLE_S = 0.5

Samples = list[tuple[int, dict[str, int]]]
"""Requests sent so far, and the bytes of each role."""


async def memory(folder: Path, size: Size) -> Report:
    """RSS between request FROM and the last, at most OPEN of them in the system at once."""
    async with cluster(folder) as at:
        await usual(at)
        async with Collector(at.bootstrap) as collector:

            def room(sent: Sent) -> int:
                return OPEN - (len(sent.acknowledged) - len(collector.answers))

            async with Load(at.bootstrap, room=room) as load:
                await warm_up(load, collector)
                samples: Samples = []
                watch = asyncio.create_task(_watch(at, load.sent, samples))
                await load.run(mixed(size.deadline_ms), size.requests, size.rate)
                await collector.until(load.sent.acknowledged, size.deadline_ms / 1000 + 15.0)
                watch.cancel()
                await asyncio.sleep(SETTLE_S)
                report = await report_of("memory", at, load.sent, collector.answers, size.deadline_ms)
    start = min(FROM, size.requests // 3)
    for role in ROLES:
        of_role = [(sent, rss[role]) for sent, rss in samples if role in rss]
        early = [rss for sent, rss in of_role if start <= sent <= start * 1.5]
        late = [rss for sent, rss in of_role if sent >= size.requests * 0.95]
        growth = max(late) / max(early) - 1 if early and late else float("nan")
        report.more[role] = {
            "mb_early": round(max(early, default=0) / 2**20, 1),
            "mb_late": round(max(late, default=0) / 2**20, 1),
            "growth": round(growth, 4),
            "mb_by_requests": {
                str(sent): round(rss / 2**20, 1) for sent, rss in of_role[:: len(of_role) // 20 or 1]
            },
        }
        report.expect(growth < GROWTH, f"{role} grew by {growth:.1%}")
    return judge(report)


async def _watch(at: Cluster, sent: Sent, samples: Samples) -> None:
    while True:
        rss = {}
        for role in ROLES:
            pid = at.children.by_name[role].pid
            if pid is not None:
                rss[role] = psutil.Process(pid).memory_info().rss
        samples.append((len(sent.acknowledged), rss))
        await asyncio.sleep(SAMPLE_S)
