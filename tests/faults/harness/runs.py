"""The frame of a scenario: load on one side, faults on the other, and the wait for what is still open."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.faults.harness.cluster import Cluster
from tests.faults.harness.collector import Collector
from tests.faults.harness.load import MIX, Load, Sent, mixed, request
from tests.faults.harness.report import Report, report_of

OK_SHARE = 0.999
SETTLE_S = 1.5
"""So long after the last answer is due duplicates may still come."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a scenario is: requests, their rate a second, their deadline, the seed of what is random."""

    requests: int
    rate: float
    deadline_ms: int = 20_000
    seed: int = 3
    seconds: float = 0.0

    @property
    def lasts_s(self) -> float:
        return self.requests / self.rate


Faults = Callable[[Cluster, Sent], Awaitable[None]]


async def warm_up(load: Load, collector: Collector, tasks: Sequence[str] = MIX, wait_s: float = 40.0) -> None:
    """Send one request of each of `tasks` until all are answered `ok`: every topic has been written and read
    then.

    Raises:
        AssertionError: the system does not answer at all.
    """
    until = time.monotonic() + wait_s
    for round_ in range(1000):
        names = [f"warm-{round_}-{task}" for task in sorted(set(tasks))]
        for number, name in enumerate(names, start=1):
            await load.put(*request(name, name.rpartition("-")[2], number, 5_000))
        await collector.until(names, 6.0)
        found = [collector.answers[name][0].status for name in names if name in collector.answers]
        if found == ["ok"] * len(names):
            return
        assert time.monotonic() < until, f"no answers while warming up: {found}"
        await asyncio.sleep(0.5)


async def under_load(
    scenario: str,
    at: Cluster,
    size: Size,
    faults: Faults,
    *,
    requests: Iterator[tuple[str, bytes]] | None = None,
    tasks: Sequence[str] = MIX,
    judge_answers: Callable[[Report, Collector], None] | None = None,
    most_open: int | None = None,
    prefixes: tuple[str, ...] = ("r-",),
    to_the_end: bool = False,
) -> Report:
    """Warm up, send the load while `faults` runs, wait for every answer, and report. With `most_open` no more
    than so many requests wait at a time, however slow the machine is. `to_the_end`: of `faults`, which may
    take longer than the size's requests.
    """

    def room(_: Sent) -> int:
        return (most_open or 0) - (load.puts - len(collector.answers))

    async with (
        Collector(at.bootstrap) as collector,
        Load(at.bootstrap, room=None if most_open is None else room) as load,
    ):
        await warm_up(load, collector, tasks)
        stream = requests if requests is not None else mixed(size.deadline_ms)
        trouble = asyncio.create_task(faults(at, load.sent))
        try:
            await load.run(stream, size.requests, size.rate, trouble if to_the_end else None)
            await trouble
        finally:
            trouble.cancel()
            await asyncio.gather(trouble, return_exceptions=True)
        wanted = load.sent.acknowledged
        await collector.until(wanted, size.deadline_ms / 1000 + 15.0)
        await asyncio.sleep(SETTLE_S)
        report = await report_of(scenario, at, load.sent, collector.answers, size.deadline_ms, prefixes)
        if judge_answers is not None:
            judge_answers(report, collector)
        return report


def judge(report: Report, *, ok_share: float = OK_SHARE, late: int = 0) -> Report:
    """The bounds that hold under every fault that leaves the system alive."""
    report.expect(report.lost == 0, f"{report.lost} requests were never answered")
    report.expect(report.late <= late, f"{report.late} answers came late, by up to {report.latest_ms} ms")
    report.expect(
        report.ok >= ok_share * report.requests, f"{report.ok} of {report.requests} ok, below {ok_share:.1%}"
    )
    report.expect(report.contradicting == 0, f"{report.contradicting} ids have contradicting results")
    missing = report.more.get("acknowledged_but_not_in_the_log", 0)
    report.expect(missing == 0, f"{missing} acknowledged requests are not in the log")
    return report


async def kill_now_and_then(
    at: Cluster, names: Sequence[str], seconds: float, every_s: float, seed: int
) -> None:
    """SIGKILL one of `names` at random, every `every_s`, for `seconds`: a role first, then one of it."""
    choose = random.Random(seed)
    by_role: dict[str, list[str]] = {}
    for name in names:
        by_role.setdefault(name.rpartition("-")[0], []).append(name)
    until = time.monotonic() + seconds
    while time.monotonic() + every_s <= until:
        await asyncio.sleep(every_s)
        name = choose.choice(choose.choice(list(by_role.values())))
        if at.children.kill(name):
            at.mark("kill", name)


async def kill_as_it_goes(
    at: Cluster, names: Sequence[str], sent: Sent, requests: int, every: int, seed: int
) -> None:
    """SIGKILL a role at random, and of it one of `names`, whenever `every` more of `requests` were sent."""
    choose = random.Random(seed)
    by_role: dict[str, list[str]] = {}
    for name in names:
        by_role.setdefault(name.rpartition("-")[0], []).append(name)
    for goal in range(every, requests - every // 2, every):
        while len(sent.acknowledged) < goal:
            await asyncio.sleep(0.1)
        name = choose.choice(choose.choice(list(by_role.values())))
        if at.children.kill(name):
            at.mark("kill", name)


def folder_of(base: Path, scenario: str) -> Path:
    """A fresh folder for the logs and data of one scenario."""
    folder = base / f"{scenario}-{int(time.time())}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
