"""Workers that die with a full batch in hand, and workers whose model hangs."""

from __future__ import annotations

import asyncio
import json
import math
import random
import time
from collections.abc import Iterator
from pathlib import Path

from schemas.cards import Heartbeat
from schemas.codec import decode
from tests.faults.app.batches import LOADS_S, MOST, TAKES_S
from tests.faults.harness.cluster import Cluster, cluster
from tests.faults.harness.collector import Collector
from tests.faults.harness.load import Sent, request
from tests.faults.harness.metrics import Watch
from tests.faults.harness.report import Report
from tests.faults.harness.runs import Size, judge, under_load
from tests.faults.harness.topic_records import read_topic
from tests.helpers.redis import free_port

APP = Path(__file__).resolve().parents[2] / "app" / "batches.py"
MOST_OPEN = 120
REST_S = 2.0
"""A worker is left alone for so long after it got ready: one that is killed before it finished anything is
suspected of its records, and takes them one at a time."""
PATIENCE_S = 60.0
HANG_S = 2.5
OPEN = 2


def write_rules(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    tasks = {name: {"capability": f"fault/{name}", "side": "local"} for name in ("batch", "hang", "solo")}
    rules = {"apps": [str(APP)], "builtin": False, "cache_s": 0, "tasks": tasks}
    path = folder / "rules.json"
    path.write_text(json.dumps(rules), encoding="utf-8")
    return path


async def full_batches(folder: Path, size: Size) -> Report:
    """SIGKILL of one of three workers with a full batch in hand, whenever 200 more requests were sent."""
    wanted = max(3, size.requests // 200)
    async with cluster(folder, rules=write_rules(folder)) as at:
        workers = [at.worker("local", number, ("fault/batch",)) for number in range(3)]
        await at.ready([*workers, at.aggregator(), at.router()])
        await asyncio.sleep(1.0)
        killed: list[str] = []

        async def faults(at: Cluster, sent: Sent) -> None:
            choose = random.Random(size.seed)
            starts = dict.fromkeys(workers, 1)
            rested = dict.fromkeys(workers, time.monotonic())
            for number in range(1, wanted + 1):
                while len(sent.acknowledged) < number * size.requests // (wanted + 1):
                    await asyncio.sleep(0.05)
                name = await _with_full_batch(at, workers, starts, rested, choose)
                if name is not None and at.children.kill(name):
                    at.mark("kill", name)
                    killed.append(name)
                    starts[name] += 1
                    rested[name] = math.inf

        requests = (request(f"r-{n}", "batch", n, size.deadline_ms) for n in range(10**9))
        report = await under_load(
            "full-batches", at, size, faults, requests=requests, tasks=("batch",), most_open=MOST_OPEN
        )
    judge(report, ok_share=1.0)
    report.more["kills_with_a_full_batch"] = len(killed)
    report.expect(len(killed) >= wanted, f"{len(killed)} of {wanted} kills")
    report.expect(report.duplicate_results == 0, f"{report.duplicate_results} answered twice")
    report.expect(not report.dead_letters, f"dead letters: {report.dead_letters}")
    return report


async def _with_full_batch(
    at: Cluster,
    workers: list[str],
    starts: dict[str, int],
    rested: dict[str, float],
    choose: random.Random,
) -> str | None:
    """A worker that has a full batch in hand now, and has been at work for a while; None where none comes."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        for name in choose.sample(workers, len(workers)):
            if rested[name] == math.inf and at.children.by_name[name].said("is ready") >= starts[name]:
                rested[name] = time.monotonic() + REST_S
            if time.monotonic() >= rested[name] and _is_full(at, name):
                return name
        await asyncio.sleep(0.003)
    return None


def _is_full(at: Cluster, name: str) -> bool:
    try:
        return (at.folder / f"flight-{at.children.by_name[name].pid}").read_text() == str(MOST)
    except FileNotFoundError:
        return False


async def hanging(folder: Path, size: Size) -> Report:
    """One input makes a model hang. Of two workers the other goes on, the hung one starts itself again, and
    the input is answered. With `seconds` it hangs each time and is answered with an error in the end, also
    where there is only one worker: the breaker opens, and closes after the last restart.
    """
    async with cluster(folder, rules=write_rules(folder)) as at:
        port = free_port()
        limits = ("--hang-s", str(HANG_S))
        workers = [at.worker("local", number, ("fault/hang",), more=limits) for number in range(2)]
        if size.seconds:
            workers.append(at.worker("local", 2, ("fault/solo",), more=("--hang-s", str(size.seconds))))
        await at.ready([*workers, at.aggregator(), at.router(port=port)])
        await asyncio.sleep(1.0)
        found: dict[str, float | None] = {}

        async def faults(at: Cluster, _: Sent) -> None:
            if size.seconds:
                watch = Watch(port, "edgeway_breaker_open", capability="fault/solo", side="local")
                found["opened"] = await watch.until([OPEN], size.lasts_s)
                found["closed"] = await watch.until([0], size.lasts_s + 30.0)
                await watch.stop()

        def look(report: Report, collector: Collector) -> None:
            _look(report, found, sorted(float(path.name[5:]) for path in folder.glob("hung-*")), collector)

        report = await under_load(
            "hanging",
            at,
            size,
            faults,
            requests=_with_poison(size),
            tasks=("hang", "solo") if size.seconds else ("hang",),
            judge_answers=look,
        )
        busy, loaded = await _beats(at)
        report.more["busy_ms_in_heartbeats"] = busy
        report.expect(loaded, "a worker beat before its models were loaded")
        report.more["restarts"] = {
            name: at.children.by_name[name].said("starting again in") for name in workers
        }
    poisons = 2 if size.seconds else 0
    # Where its only worker stands still a task without another side is refused at once.
    refused = report.errors.pop("no_placement", 0) if poisons else 0
    report.more["refused_while_the_breaker_was_open"] = refused
    judge(report, ok_share=(report.requests - poisons - refused) / report.requests)
    report.expect(refused <= report.requests // 10, f"{refused} refused")
    wanted = {"killed_its_process": poisons} if poisons else {}
    report.expect(report.errors == wanted, f"errors were {report.errors}")
    report.expect(not report.unasked_exits, f"a worker was left to its supervisor: {report.unasked_exits}")
    report.expect(max(busy.values()) > 400, f"no heartbeat showed the hang: {busy}")
    restarts = sum(report.more["restarts"].values())
    report.expect(restarts == (3 * poisons or 1), f"restarts: {report.more['restarts']}")
    return report


def _with_poison(size: Size) -> Iterator[tuple[str, bytes]]:
    """The first request of each task after a quarter of all makes its model hang."""
    left = {"hang", "solo"}
    for n in range(10**9):
        task = "solo" if size.seconds and n % 3 == 0 else "hang"
        hang = {}
        if n >= size.requests // 4 and task in left:
            left.remove(task)
            hang = {"hang": "always" if size.seconds else "once"}
        yield request(f"r-{n}", task, n, size.deadline_ms, **hang)


def _look(report: Report, found: dict[str, float | None], hung: list[float], collector: Collector) -> None:
    first = hung[0] if hung else 0.0
    times = [answer.at - first * 1000 for each in collector.answers.values() for answer in each]
    meanwhile = [each for each in times if 300 < each < 1000 * HANG_S]
    report.more |= {"hangs": len(hung), "answers_while_it_hung": len(meanwhile), **found}
    report.expect(len(meanwhile) > 5, f"{len(meanwhile)} answers while one worker hung")
    if found:
        report.expect(found["opened"] is not None, "the breaker of the only worker never opened")
        report.expect(found["closed"] is not None, "the breaker of the only worker never closed")


async def _beats(at: Cluster) -> tuple[dict[str, float], bool]:
    """The longest run that a heartbeat showed, by capability; whether all came after the models' load."""
    busy: dict[str, float] = {}
    loaded = True
    async for record in read_topic(at.bootstrap, "capabilities"):
        for offer in decode(record.value or b"", Heartbeat).offers:
            name, live = offer.card.capability, offer.live
            busy[name] = max(busy.get(name, 0.0), round(live.busy_ms))
            loaded = loaded and live.load_ms >= 900.0 * LOADS_S
    return busy, loaded


async def stopping(folder: Path, size: Size) -> Report:
    """SIGTERM to a worker whose batch takes for ever: it ends in time, and another one answers the batch."""
    async with cluster(folder, rules=write_rules(folder)) as at:
        limits = ("--stop-s", "1", "--drain-s", "0.5", "--leave-on-stop", "yes")
        workers = [at.worker("local", number, ("fault/hang",), more=limits) for number in range(2)]
        await at.ready([*workers, at.aggregator(), at.router()])
        await asyncio.sleep(1.0)
        took: list[float] = []

        async def faults(at: Cluster, _: Sent) -> None:
            until = time.monotonic() + size.lasts_s
            while not any(at.folder.glob("hung-*")) and time.monotonic() < until:
                await asyncio.sleep(0.02)
            await asyncio.sleep(0.2)
            by_pid = {f"flight-{at.children.by_name[name].pid}": name for name in workers}
            held = [name for file, name in by_pid.items() if (at.folder / file).read_text() not in ("", "0")]
            # The one that answers as well may hold a batch too; the hung one still does a moment later.
            await asyncio.sleep(2 * TAKES_S)
            name = next((name for name in held if _holds(at, name)), held[0])
            at.mark("terminate", name)
            began = time.monotonic()
            code = await at.children.stop(name)
            took.append(time.monotonic() - began if code == 0 else float("inf"))

        report = await under_load("stopping", at, size, faults, requests=_with_poison(size), tasks=("hang",))
    judge(report, ok_share=1.0)
    report.more["stop_s"] = took
    report.expect(bool(took) and took[0] < 5.0, f"the stop took {took} s")
    report.expect(report.duplicate_results == 0, f"{report.duplicate_results} answered twice")
    return report


def _holds(at: Cluster, name: str) -> bool:
    return (at.folder / f"flight-{at.children.by_name[name].pid}").read_text() not in ("", "0")
