"""The scenarios by name: each takes a folder and a size; `wrong` of its report is empty if all is well."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from tests.faults.harness.report import Report
from tests.faults.harness.runs import Size
from tests.faults.harness.scenarios import (
    brokers,
    callers,
    kills,
    long_open,
    members,
    memory,
    privacy,
    records,
    redis,
    silence,
    slow_cloud,
    workers,
)

Scenario = Callable[[Path, Size], Awaitable[Report]]


@dataclass(frozen=True, slots=True)
class Entry:
    """A scenario, its size in `make test`, and its size in full."""

    run: Scenario
    short: Size
    full: Size


_BURST = Size(5_000, 2_000.0, deadline_ms=90_000)

SCENARIOS: dict[str, Entry] = {
    "kills": Entry(kills.random_kills, Size(500, 40.0), Size(10_000, 100.0)),
    "kills-dynamic": Entry(kills.random_kills_without_slots, Size(800, 40.0), Size(10_000, 100.0)),
    "freeze-router": Entry(kills.freeze_router, Size(1_000, 40.0), Size(10_000, 100.0)),
    "freeze-aggregator": Entry(kills.freeze_aggregator, Size(1_000, 40.0), Size(10_000, 100.0)),
    "freeze-worker": Entry(kills.freeze_worker, Size(1_000, 40.0), Size(10_000, 100.0)),
    "broker": Entry(brokers.broker_restart, Size(240, 40.0, deadline_ms=60_000), Size(10_000, 100.0)),
    "brokers": Entry(brokers.broker_lost, Size(600, 40.0, deadline_ms=60_000), Size(10_000, 100.0)),
    "odd-records": Entry(records.odd_records, Size(300, 50.0), Size(10_000, 100.0)),
    "killer": Entry(
        records.killer, Size(120, 20.0, deadline_ms=30_000), Size(3_000, 50.0, deadline_ms=30_000)
    ),
    "no-workers": Entry(silence.no_workers, Size(300, 50.0, deadline_ms=4_000), Size(10_000, 100.0)),
    "open-joins": Entry(silence.open_joins, Size(800, 2_000.0, deadline_ms=60_000), _BURST),
    "long-open": Entry(
        long_open.long_open, Size(4_500, 50.0, seconds=75.0), Size(126_000, 200.0, seconds=600.0)
    ),
    "members": Entry(members.join_and_leave, Size(280, 40.0), Size(10_000, 100.0)),
    "memory": Entry(memory.memory, Size(6_000, 400.0), Size(200_000, 500.0)),
    "privacy": Entry(privacy.privacy, Size(480, 50.0), Size(20_000, 50.0, deadline_ms=60_000)),
    "redis": Entry(redis.redis, Size(500, 20.0, seconds=3.5), Size(3_600, 40.0, seconds=12.0)),
    "slow-cloud": Entry(slow_cloud.slow_cloud, Size(500, 30.0, seconds=6.0), Size(5_000, 40.0, seconds=30.0)),
    "full-batches": Entry(workers.full_batches, Size(280, 60.0), Size(10_000, 90.0, deadline_ms=60_000)),
    "hanging": Entry(
        workers.hanging,
        Size(90, 15.0, deadline_ms=30_000),
        Size(1_200, 20.0, deadline_ms=90_000, seconds=9.0),
    ),
    "stopping": Entry(
        workers.stopping,
        Size(150, 15.0, deadline_ms=30_000),
        Size(600, 20.0, deadline_ms=30_000),
    ),
    "callers": Entry(callers.callers, Size(800, 40.0), Size(100_000, 200.0)),
    "plain-json": Entry(records.plain_json, Size(1, 1.0), Size(1, 1.0)),
}
