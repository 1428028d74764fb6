"""A second router and a second aggregator come and go under load."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.faults.harness.cluster import Cluster, cluster, usual
from tests.faults.harness.load import Sent
from tests.faults.harness.report import Report
from tests.faults.harness.runs import Size, judge, under_load

AFTER_S = 1.0


async def join_and_leave(folder: Path, size: Size) -> Report:
    """Both join, work, and leave in order (SIGTERM); the share of records delivered again is stated."""
    codes: dict[str, int | None] = {}
    async with cluster(folder) as at:
        await usual(at, static=False)

        async def faults(at: Cluster, _: Sent) -> None:
            await asyncio.sleep(size.lasts_s * 0.15)
            at.mark("join", "router-1 and aggregator-1")
            names = [at.router(1, static=False), at.aggregator(1, static=False)]
            await at.ready(names)
            await asyncio.sleep(size.lasts_s * 0.3)
            for name in names:
                at.mark("leave", name)
                codes[name] = await at.children.stop(name)
            await asyncio.sleep(AFTER_S)

        report = judge(await under_load("members", at, size, faults, to_the_end=True))
    repeated = report.extra_plans + report.extra_partials
    report.more |= {
        "exit_codes": codes,
        "redelivered_requests_share": round(report.extra_plans / max(1, report.requests), 4),
        "repeated_records": repeated,
    }
    report.expect(all(code == 0 for code in codes.values()), f"exit codes of those that left: {codes}")
    return report
