"""One request stays open for minutes among many short ones: it must pin nothing."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from schemas.topics import partition_for
from tests.faults.harness.cluster import PARTITIONS, Cluster, cluster, usual
from tests.faults.harness.collector import Collector
from tests.faults.harness.load import Load, mixed, request
from tests.faults.harness.report import Report, report_of
from tests.faults.harness.runs import SETTLE_S, Size, judge, warm_up
from tests.faults.harness.topic_records import lag_of

HELD = "r-held"
SAMPLE_S = 5.0
TAKEOVER_S = 60.0
"""What a takeover may have to read: records of no more than the last 60 s."""


async def long_open(folder: Path, size: Size) -> Report:
    """`size.seconds` is how long the one request stays open; nobody serves it, so it ends at its deadline."""
    held_ms = int(size.seconds * 1000)
    async with cluster(folder) as at:
        await usual(at)
        async with Collector(at.bootstrap) as collector, Load(at.bootstrap) as load:
            await warm_up(load, collector)
            await load.put(*request(HELD, "nobody", 0, held_ms))
            await load.flush()
            watch = asyncio.create_task(_watch(at, size.seconds - 10.0))
            await load.run(mixed(size.deadline_ms), size.requests, size.rate)
            samples = await watch
            await collector.until([*load.sent.acknowledged], held_ms / 1000 + 15.0)
            await asyncio.sleep(SETTLE_S)
            deadlines = dict.fromkeys(load.sent.acknowledged, size.deadline_ms) | {HELD: held_ms}
            report = await report_of("long-open", at, load.sent, collector.answers, deadlines)
    oldest = max((age for age, _ in samples), default=0.0)
    report.more |= {
        "takeover_would_read_s": round(oldest, 1),
        "takeover_would_read_records": max((records for _, records in samples), default=0),
        "read_at_the_kill": {"seconds": round(samples[-1][0], 1), "records": samples[-1][1]}
        if samples
        else {},
    }
    report.expect(oldest <= TAKEOVER_S, f"a takeover would have read {oldest:.0f} s of records")
    report.expect(report.checkpoints > 0, "the long request was never checkpointed")
    return judge(report, ok_share=(report.requests - 1) / max(1, report.requests) * 0.999)


async def _watch(at: Cluster, seconds: float) -> list[tuple[float, int]]:
    """(age in s, records) between the committed offset of the held request's partition and its end.

    Shortly before the end the aggregator is killed: that takeover reads what the last sample says.
    """
    partition = partition_for(HELD.encode(), PARTITIONS)
    samples = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        await asyncio.sleep(SAMPLE_S)
        records, since = await lag_of(at.bootstrap, "joins", partition)
        samples.append((0.0 if since is None else time.time() - since / 1000, records))
    at.mark("kill", "aggregator-0")
    at.children.kill("aggregator-0")
    return samples
