"""One system measured: a burst for throughput, then requests at a steady rate for latency."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.load import Load, Sent, requests
from benchmarks.processes import Failed, Role
from benchmarks.systems import System

WAIT_S = 120.0
WARM_UP = 2000
WARM_UP_S = 3.0


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured: `requests` at once, then `seconds` at `rate` a second after WARM_UP_S of it."""

    requests: int
    rate: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Measured:
    """One run. Times in ms from the request's append to the result's; CPU seconds of the three processes."""

    throughput_rps: float
    cpu_s_per_1000: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    paced_cpu_s_per_1000: float
    role_cpu_s_per_1000: dict[str, float]
    paced_role_cpu_s_per_1000: dict[str, float]


async def measure(
    system: System, load: Load, plan: Plan, run: int, folder: Path, profiles: Path | None
) -> tuple[Measured, list[Sent]]:
    """Start the roles of `system`, measure, stop them; also the requests of the warm-up.

    Raises:
        Failed: a process ended, or a request was lost, doubled or not answered with `ok`.
    """
    roles = system.roles(folder, profiles)
    try:
        await asyncio.gather(*(role.start() for role in roles))
        await asyncio.gather(*(role.ready() for role in roles))
        prefix = f"{system.name[0]}{run:02d}"
        await _until_answering(system, load, f"{prefix}p", roles)
        warm = requests(f"{prefix}w", WARM_UP)
        await _burst(system, load, warm, roles)
        rate, cpu = await _burst(system, load, requests(f"{prefix}t", plan.requests), roles)
        times, paced = await _paced(system, load, plan, f"{prefix}l", roles)
    finally:
        await asyncio.gather(*(role.stop() for role in roles))
    p50, p95, p99 = (percentile(times, share) for share in (0.50, 0.95, 0.99))
    names = [role.name.rpartition("-")[2] for role in roles]
    by_role = [dict(zip(names, used, strict=True)) for used in (cpu, paced)]
    return Measured(rate, sum(cpu), p50, p95, p99, sum(paced), *by_role), warm


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of `values` do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


async def _until_answering(system: System, load: Load, prefix: str, roles: Sequence[Role]) -> None:
    # A router may be ready before it has heard of the worker, and then answers with an error.
    for number in range(60):
        since = await load.ends(system.results)
        await load.burst(system.requests, requests(f"{prefix}{number:02d}", 1))
        await _answered(load, system.results, since, 1, roles)
        try:
            for record in await load.read(system.results, since):
                system.check(record)
        except Failed:
            await asyncio.sleep(0.5)
        else:
            return
    raise Failed(f"{system.name} answered no request with ok for 30 s")


async def _burst(
    system: System, load: Load, sent: Sequence[Sent], roles: Sequence[Role]
) -> tuple[float, list[float]]:
    """Answers a second from the first request appended to the last answer appended; CPU by role."""
    before = await load.ends(system.requests)
    since = await load.ends(system.results)
    used = [role.cpu_s() for role in roles]
    await load.burst(system.requests, sent)
    await _answered(load, system.results, since, len(sent), roles)
    spent = [role.cpu_s() - start for role, start in zip(roles, used, strict=True)]
    asked, answered = await _times(system, load, sent, before, since)
    took = max(answered.values()) - min(asked.values())
    return len(sent) / took * 1000.0, [each / len(sent) * 1000.0 for each in spent]


async def _paced(
    system: System, load: Load, plan: Plan, prefix: str, roles: Sequence[Role]
) -> tuple[list[float], list[float]]:
    """Latencies in ms after the warm-up; CPU by role."""
    warm = int(plan.rate * WARM_UP_S)
    sent = requests(prefix, warm + int(plan.rate * plan.seconds))
    before = await load.ends(system.requests)
    since = await load.ends(system.results)
    used = [role.cpu_s() for role in roles]
    await load.pace(system.requests, sent, plan.rate)
    await _answered(load, system.results, since, len(sent), roles)
    spent = [role.cpu_s() - start for role, start in zip(roles, used, strict=True)]
    asked, answered = await _times(system, load, sent, before, since)
    times = [float(answered[each.key] - asked[each.key]) for each in sent[warm:]]
    return times, [each / len(sent) * 1000.0 for each in spent]


async def _answered(load: Load, topic: str, since: dict[Any, int], count: int, roles: Sequence[Role]) -> None:
    """Wait until `topic` has grown by `count` records."""
    until = time.monotonic() + WAIT_S
    while sum((await load.ends(topic)).values()) - sum(since.values()) < count:
        for role in roles:
            role.check()
        if time.monotonic() > until:
            raise Failed(f"{topic}: {count} answers did not come within {WAIT_S:.0f} s")
        await asyncio.sleep(0.05)


async def _times(
    system: System, load: Load, sent: Sequence[Sent], before: dict[Any, int], since: dict[Any, int]
) -> tuple[dict[bytes, int], dict[bytes, int]]:
    """Append times by id, in ms, of requests and answers; each must be there once."""
    asked = {record.key: record.timestamp for record in await load.read(system.requests, before)}
    answers = await load.read(system.results, since)
    answered = {record.key: record.timestamp for record in answers}
    wanted = {each.key for each in sent}
    if answered.keys() != wanted or len(answers) != len(wanted):
        lost, doubled = len(wanted - answered.keys()), len(answers) - len(answered)
        raise Failed(f"{system.name}: {lost} of {len(wanted)} requests lost, {doubled} answered twice")
    for record in answers:
        system.check(record)
    return asked, answered
