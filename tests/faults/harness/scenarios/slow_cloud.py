"""The cloud answers slowly for a while: its breaker opens, and closes again by itself."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path

from tests.faults.harness.cluster import Cluster, cluster
from tests.faults.harness.collector import Answer, Collector
from tests.faults.harness.load import Sent, request
from tests.faults.harness.metrics import Watch
from tests.faults.harness.report import Report
from tests.faults.harness.runs import Size, judge, under_load
from tests.helpers.redis import free_port

APP = Path(__file__).resolve().parents[2] / "app" / "decisions.py"
CAPABILITIES = ("fault/quick", "fault/patient")
CLOSED, OPEN = 0, 2
OPENS_S = 20.0
CLOSES_S = 90.0
BEFORE_S = 5.0
OPEN_FOR_S, AFTER_S = 3.0, 4.0
SLACK_S = 1.5
"""Between what the router's metrics say of the breaker and what each role decides by."""

RULES = {
    "apps": [str(APP)],
    "builtin": False,
    "privacy": {"detectors": []},
    "cache_s": 0,
    "tasks": {
        "quick": {"capability": "fault/quick", "local_threshold": 0.9, "on_slow": "wait"},
        "patient": {
            "capability": "fault/patient",
            "local_threshold": 0.9,
            "slow_ms": 5000,
            "on_slow": "wait",
        },
    },
}


def write_rules(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "rules.json"
    path.write_text(json.dumps(RULES), encoding="utf-8")
    return path


async def slow_cloud(folder: Path, size: Size) -> Report:
    """600 ms instead of none for `seconds`, from 5 s on; the load goes on until the breaker has closed."""
    async with cluster(folder, rules=write_rules(folder)) as at:
        port = free_port()
        names = [at.worker(side, 0, CAPABILITIES) for side in ("local", "cloud")]
        names += [at.aggregator(), at.router(port=port)]
        await at.ready(names)
        await asyncio.sleep(1.0)
        found: dict[str, float | None] = {}
        watches: dict[str, Watch] = {}

        async def faults(at: Cluster, _: Sent) -> None:
            for name in CAPABILITIES:
                watches[name] = Watch(port, "edgeway_breaker_open", capability=name, side="cloud")
            await asyncio.sleep(BEFORE_S)
            found["slow"] = at.mark("slow", "the cloud").at
            (folder / "slow").touch()
            found["opened"] = await watches["fault/quick"].until([OPEN], OPENS_S)
            until = max(found["slow"] + size.seconds, time.time() + SLACK_S + OPEN_FOR_S)
            await asyncio.sleep(until - time.time())
            (folder / "slow").unlink()
            found["fast"] = at.mark("fast", "the cloud").at
            found["closed"] = await watches["fault/quick"].until([CLOSED], CLOSES_S)
            await asyncio.sleep(AFTER_S)
            for watch in watches.values():
                await watch.stop()

        sent_at: dict[str, float] = {}

        def look(report: Report, collector: Collector) -> None:
            _look(report, found, watches, collector, sent_at)

        requests = _requests(size.deadline_ms, sent_at)
        report = await under_load(
            "slow-cloud",
            at,
            size,
            faults,
            requests=requests,
            tasks=("quick", "patient"),
            judge_answers=look,
            to_the_end=True,
        )
        return judge(report)


def _requests(deadline_ms: int, sent_at: dict[str, float]) -> Iterator[tuple[str, bytes]]:
    for number in itertools.count():
        task = "patient" if number % 2 else "quick"
        name = f"r-{task}-{number}"
        sent_at[name] = time.time()
        yield request(name, task, number, deadline_ms)


def _look(
    report: Report,
    found: dict[str, float | None],
    watches: dict[str, Watch],
    collector: Collector,
    sent_at: dict[str, float],
) -> None:
    slow, opened, fast, closed = (found.get(name) for name in ("slow", "opened", "fast", "closed"))
    report.expect(opened is not None, f"the breaker did not open within {OPENS_S:.0f} s")
    report.expect(closed is not None, f"the breaker did not close within {CLOSES_S:.0f} s")
    patient = max((value for _, value in watches["fault/patient"].seen), default=None)
    report.expect(patient == CLOSED, f"the breaker of a patient capability was at {patient}")
    if slow is None or opened is None or fast is None or closed is None:
        return
    report.more["opened_after_s"] = round(opened - slow, 1)
    report.more["closed_after_s"] = round(closed - fast, 1)
    quick, kept = (
        {name: found[0] for name, found in collector.answers.items() if name.startswith(f"r-{task}-")}
        for task in ("quick", "patient")
    )
    during = [answer for name, answer in quick.items() if opened + SLACK_S <= sent_at[name] <= fast]
    marked = sum(answer.side == "local" and answer.approximate for answer in during)
    report.more["answers_while_open"] = len(during)
    report.more["local_and_marked"] = marked
    report.more["by_the_cloud_as_trials"] = _by_the_cloud(during)
    report.expect(len(during) > 0, "nothing was answered while the breaker was open")
    report.expect(
        marked + _by_the_cloud(during) == len(during), "an answer was neither of the cloud nor marked"
    )
    report.expect(marked >= 0.8 * len(during), f"{marked} of {len(during)} were local and marked")
    after = [answer for name, answer in quick.items() if sent_at[name] >= closed + SLACK_S]
    report.more["answers_after"] = len(after)
    report.expect(
        len(after) > 0 and _by_the_cloud(after) >= 0.95 * len(after),
        f"{_by_the_cloud(after)} of {len(after)} came from the cloud once it had closed",
    )
    patiently = _by_the_cloud(list(kept.values()))
    report.more["patient_by_the_cloud"] = f"{patiently} of {len(kept)}"
    report.expect(patiently == len(kept), "a patient capability turned local")


def _by_the_cloud(answers: list[Answer]) -> int:
    return sum(answer.side == "cloud" and not answer.approximate for answer in answers)
