"""The whole: callers on Kafka and over HTTP, and a SIGKILL of any role, the gateways among them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.faults.harness.cluster import Cluster, cluster, usual
from tests.faults.harness.http_callers import PREFIX, Callers
from tests.faults.harness.load import MIX, Sent
from tests.faults.harness.report import Report
from tests.faults.harness.runs import OK_SHARE, Size, judge, kill_now_and_then, under_load
from tests.helpers.redis import WheelServer, free_port

EVERY_S, EVERY_SHORT_S = 10.0, 4.0
HTTP_SHARE = 0.1
LATE_SHARE = 0.001


async def callers(folder: Path, size: Size) -> Report:
    """Nine of ten requests by Kafka, one over HTTP at two gateways, by callers that ask again under the same
    key. Router, aggregator, workers and gateways are killed at random."""
    every_s = EVERY_S if size.lasts_s > 120 else EVERY_SHORT_S
    over_http = int(size.requests * HTTP_SHARE)
    ports = [free_port(), free_port()]
    asked = Callers(ports, size.deadline_ms)
    redis = WheelServer(folder)
    folder.mkdir(parents=True, exist_ok=True)
    redis.start()
    try:
        report = await _under_load(folder, size, redis.url, asked, over_http, every_s)
    finally:
        redis.kill()
    _judge_callers(report, asked, over_http)
    return judge(report, late=int(report.requests * LATE_SHARE))


async def _under_load(
    folder: Path, size: Size, redis: str, asked: Callers, over_http: int, every_s: float
) -> Report:
    async with cluster(folder, redis=redis) as at:
        names = await usual(at)
        gateways = [at.gateway(number, port) for number, port in enumerate(asked.ports)]
        await at.ready(gateways)

        async def faults(at: Cluster, _: Sent) -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(asked.run(over_http, size.rate * HTTP_SHARE))
                group.create_task(
                    kill_now_and_then(at, [*names, *gateways], size.lasts_s, every_s, size.seed)
                )

        by_kafka = Size(size.requests - over_http, size.rate * (1 - HTTP_SHARE), size.deadline_ms, size.seed)
        return await under_load("callers", at, by_kafka, faults, prefixes=("r-", PREFIX))


def _judge_callers(report: Report, asked: Callers, over_http: int) -> None:
    told = asked.told
    good = sum(one.status == 200 and one.result == "ok" for one in told.values())
    mixed_up = [
        name
        for name, one in told.items()
        if one.number is not None
        and MIX[int(name.removeprefix(PREFIX)) % len(MIX)] == "light"
        and one.number != int(name.removeprefix(PREFIX))
    ]
    report.more["http_callers"] = over_http
    report.more["http_told"] = len(told)
    report.more["http_ok"] = good
    report.more["http_calls"] = sum(one.calls for one in told.values())
    report.more["http_turned_away"] = dict(asked.turned_away)
    report.more["http_other"] = sorted(
        {(one.status, one.result) for one in told.values() if one.status != 200}
    )
    report.expect(len(told) == over_http, f"{over_http - len(told)} callers over HTTP were told nothing")
    report.expect(good >= OK_SHARE * over_http, f"{good} of {over_http} callers over HTTP were answered ok")
    report.expect(not mixed_up, f"callers over HTTP got others' answers: {mixed_up[:5]}")
