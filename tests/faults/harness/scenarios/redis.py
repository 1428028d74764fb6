"""Redis stopped, slow and hung, with a budget in force: its ledger alone lets anything paid through."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from schemas.rules import parse_rules
from schemas.topics import capability_topic
from streams.budget import RedisBudget
from streams.stores import RedisLink
from tests.faults.app.decisions import PAID, PRICE
from tests.faults.harness.cluster import Cluster, cluster
from tests.faults.harness.collector import Answer, Collector
from tests.faults.harness.load import Sent, request
from tests.faults.harness.report import Report
from tests.faults.harness.runs import Size, judge, under_load
from tests.faults.harness.topic_records import read_topic
from tests.helpers.proxy import SlowProxy
from tests.helpers.redis import WheelServer

APP = Path(__file__).resolve().parents[2] / "app" / "decisions.py"
LOCAL = ("fault/paid",)
CLOUD = ("fault/paid", "fault/only")
TASKS = ("paid", "paid", "only", "paid")
"""Of four requests one paid answer is sure, one is not and asks the cloud, and one has the cloud alone."""
PAID_SHARE = 0.5
PHASES = ("before", "stopped", "after", "slow", "after-slow", "hung", "last")
AWAY = ("stopped", "slow", "hung")
DELAY_S = 0.5
SLACK_S = 1.5
"""What was let through before still reaches its topic for so long."""
BACK_S = 5.0
LONG_S = 10.0
"""Phases from which on a run also waits for what was set aside to drain."""
DRAINS_S = 110.0
"""Longer than a reservation lives: its deadline and a minute."""
ENOUGH = 0.7
"""The budget, as a share of what would be paid while Redis is there."""


@dataclass
class Windows:
    """When each phase began and ended, in seconds since the epoch."""

    times: dict[str, tuple[float, float]] = field(default_factory=dict)

    def inside(self, phase: str, at_ms: int, slack_s: float = 0.0) -> bool:
        began, ended = self.times[phase]
        return began + slack_s <= at_ms / 1000 < ended


def rules(limit: float) -> dict[str, Any]:
    return {
        "apps": [str(APP)],
        "builtin": False,
        "privacy": {"detectors": []},
        "cache_s": 0,
        "budget": {"per_day": limit},
        "tasks": {
            "paid": {"capability": "fault/paid", "local_threshold": 0.9, "on_slow": "wait"},
            "only": {"capability": "fault/only", "side": "cloud"},
        },
    }


async def redis(folder: Path, size: Size) -> Report:
    """Seven phases of `seconds` each, or more; the server acknowledges no change before it is on disk."""
    folder.mkdir(parents=True, exist_ok=True)
    open_s = sum(_lasts_s(phase, size.seconds) for phase in PHASES if phase not in AWAY)
    limit = round(ENOUGH * PAID_SHARE * size.rate * open_s * PRICE, 3)
    path = folder / "rules.json"
    path.write_text(json.dumps(rules(limit)), encoding="utf-8")
    server = WheelServer(folder, durable=True)
    server.start()
    windows = Windows()
    try:
        async with (
            SlowProxy(urlsplit(server.url).port or 0) as proxy,
            cluster(folder, rules=path, redis=f"redis://127.0.0.1:{proxy.port}/0") as at,
        ):
            names = [at.worker("local", 0, LOCAL)]
            names += [at.worker("cloud", number, CLOUD) for number in range(2)]
            names += [at.aggregator(), at.router()]
            await at.ready(names)
            await asyncio.sleep(1.0)

            async def faults(at: Cluster, _: Sent) -> None:
                await _phases(at, size.seconds, server, proxy, windows)

            def look(report: Report, collector: Collector) -> None:
                _answers(report, windows, collector)

            report = await under_load(
                "redis",
                at,
                size,
                faults,
                requests=_requests(size),
                tasks=("paid", "only"),
                judge_answers=look,
                to_the_end=True,
            )
            judge(report, ok_share=0.0)
            calls = await _payments(report, at, windows, limit)
            await _ledger(report, server.url, path, calls * PRICE, wait=size.seconds >= LONG_S)
            return report
    finally:
        server.kill()


async def _phases(
    at: Cluster, seconds: float, server: WheelServer, proxy: SlowProxy, windows: Windows
) -> None:
    def slow(delay_s: float) -> None:
        proxy.delay_s = delay_s

    begins = {"stopped": server.kill, "slow": lambda: slow(DELAY_S), "hung": server.pause}
    ends = {"stopped": server.start, "slow": lambda: slow(0.0), "hung": server.resume}
    for phase in PHASES:
        if phase in begins:
            at.mark(phase, "redis")
            await asyncio.to_thread(begins[phase])
        began = time.time()
        await asyncio.sleep(_lasts_s(phase, seconds))
        windows.times[phase] = (began, time.time())
        if phase in ends:
            await asyncio.to_thread(ends[phase])
            at.mark("back", "redis")


def _lasts_s(phase: str, seconds: float) -> float:
    """Long enough for what is waited for in it."""
    return max(seconds, BACK_S) if phase.startswith("after") else seconds


def _requests(size: Size) -> Iterator[tuple[str, bytes]]:
    for number in itertools.count():
        task = TASKS[number % len(TASKS)]
        yield request(f"r-{task}-{number}", task, number, size.deadline_ms)


def _answers(report: Report, windows: Windows, collector: Collector) -> None:
    """While Redis is away the edge answers everything it can."""
    firsts = {name: found[0] for name, found in collector.answers.items()}
    for phase in PHASES:
        local = _of(firsts, "r-paid-", windows, phase)
        only = _of(firsts, "r-only-", windows, phase)
        report.more[phase] = {
            "edge": dict(Counter(_said(answer) for answer in local)),
            "cloud alone": dict(Counter(_said(answer) for answer in only)),
        }
    for phase in AWAY:
        local = [
            answer
            for name, answer in firsts.items()
            if name.startswith("r-paid-") and windows.inside(phase, answer.at, SLACK_S)
        ]
        good = sum(answer.status == "ok" and answer.side == "local" for answer in local)
        report.expect(len(local) > 0, f"the edge fell silent while Redis was {phase}")
        report.expect(good == len(local), f"{good} of {len(local)} were answered by the edge: {phase}")


def _of(firsts: dict[str, Answer], prefix: str, windows: Windows, phase: str) -> list[Answer]:
    return [
        answer
        for name, answer in firsts.items()
        if name.startswith(prefix) and windows.inside(phase, answer.at)
    ]


def _said(answer: Answer) -> str:
    return answer.code or f"{answer.status} {answer.side}{' (marked)' if answer.approximate else ''}"


async def _ledger(report: Report, url: str, rules_file: Path, paid: float, *, wait: bool) -> None:
    """The ledger never says less than was paid, nor more than the limit; what is set aside drains."""
    rule = parse_rules(rules_file.read_bytes()).budget
    assert rule is not None
    assert rule.per_day is not None
    budget = RedisBudget(RedisLink(url), rule, opens=False)
    try:
        total = (await budget.spend(int(time.time() * 1000))).total
        report.more["ledger"] = {"spent": total.spent, "reserved": total.reserved}
        report.expect(total.spent >= paid - 1e-9, f"the ledger says {total.spent}, and {paid} were paid")
        report.expect(
            total.spent + total.reserved <= rule.per_day + 1e-9, f"the ledger is above its limit: {total}"
        )
        until = time.monotonic() + DRAINS_S
        while wait and total.reserved and time.monotonic() < until:
            await asyncio.sleep(1.0)
            total = (await budget.spend(int(time.time() * 1000))).total
        if wait:
            report.more["ledger_in_the_end"] = {"spent": total.spent, "reserved": total.reserved}
            report.expect(total.reserved == 0, f"{total.reserved} are still set aside after {DRAINS_S:.0f} s")
    finally:
        await budget.close()


async def _payments(report: Report, at: Cluster, windows: Windows, limit: float) -> int:
    """How often the service was paid, by its own books; and when anything was sent there."""
    calls = len((at.folder / PAID).read_text(encoding="utf-8").splitlines())
    report.more["paid_calls"] = calls
    report.more["paid"] = round(calls * PRICE, 6)
    report.more["limit"] = limit
    report.expect(calls * PRICE <= limit + 1e-9, f"{calls} calls of {PRICE} were paid, above {limit}")
    sent: list[int] = []
    for capability in CLOUD:
        async for record in read_topic(at.bootstrap, capability_topic("cloud", capability)):
            sent.append(record.timestamp)
    for phase in AWAY:
        inside = sum(windows.inside(phase, at_ms, SLACK_S) for at_ms in sent)
        report.more[f"sent_while_{phase}"] = inside
        report.expect(inside == 0, f"{inside} records went to the paid cloud while Redis was {phase}")
    for phase in ("after", "after-slow"):
        began = windows.times[phase][0]
        first = min((at_ms / 1000 for at_ms in sent if at_ms / 1000 >= began), default=None)
        took = None if first is None else round(first - began, 2)
        report.more[f"open_again_s_{phase}"] = took
        report.expect(took is not None and took <= BACK_S, f"the cloud was not open again {phase}: {took}")
    return calls
