"""What the ready-made capabilities of the library can take, and how long they take at half of that.

`python -m benchmarks.library [--only NAME] [--seconds S] [--json FILE]`. Each capability is served by one
worker process, beside a router and an aggregator, on an embedded Kafka. Capacity: answers a second while 32
requests are unanswered at any time. Then requests come at half that rate: the times are from a request's
append to its answer's, by the broker's clock. Every request must be answered once, with `ok`; else the exit
code is 1.

Figures are of the machine as it is: router, worker, aggregator, Kafka and this program share its cores.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks.library_samples import BOUND_MS, Sample, samples
from benchmarks.load import Load, Sent
from benchmarks.measure import percentile
from benchmarks.processes import Failed, Role
from edgeway.embedded import EmbeddedKafka, EmbeddedKafkaError
from edgeway.rules_of import rules_of
from edgeway.topics_admin import apply_topics
from schemas import codec, headers, topics
from schemas.messages import MAX_DEADLINE_MS, Request, Result
from streams.settings import Settings

PARTITIONS = 1
PILOT = 60
IN_FLIGHT = 32
WARM_UP_S = 2.0
WAIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Measured:
    """Of one capability; `rate_rps` is half its capacity, times are at that rate, `worker_cpu_ms` is a
    call's."""

    capacity_rps: float
    rate_rps: float
    p50_ms: float
    p90_ms: float
    p99_ms: float
    bound_ms: float | None
    worker_cpu_ms: float

    @property
    def met(self) -> bool | None:
        return None if self.bound_ms is None else self.p90_ms < self.bound_ms


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="a capability such as geo/gps_check, or a part of it"
    )
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="of each of the two measurements (default 10)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    given = parser.parse_args()
    if given.seconds <= 0:
        parser.error("--seconds must be above 0")
    return given


def rules(chosen: Sequence[Sample]) -> dict[str, Any]:
    """A task for each capability, that runs it at the edge."""
    tasks = {
        _task(sample): {
            "steps": [{"name": "it", "capability": sample.capability, "side": "local"}],
            "merge": {"strategy": "priority_override"},
            "detectors": [],
            "cache": False,
        }
        for sample in chosen
    }
    return {"apps": ["workers.library"], "tasks": tasks}


def _task(sample: Sample) -> str:
    return sample.capability.replace("/", "_")


class Bench:
    """A broker with a router and an aggregator on it."""

    def __init__(self, kafka: str, path: Path, folder: Path, load: Load, seconds: float) -> None:
        self._common = ["--kafka", kafka, "--rules", str(path)]
        self._folder = folder
        self._load = load
        self._seconds = seconds
        self.roles = [self._role(name) for name in ("router", "aggregator")]

    def _role(self, role: str, *more: str) -> Role:
        return Role(
            f"{role}-{time.monotonic_ns()}", ["-m", "edgeway", role, *self._common, *more], self._folder
        )

    async def measure(self, sample: Sample) -> Measured:
        """
        Raises:
            Failed: a role ended, or a request was lost, doubled or not answered with `ok`.
        """
        worker = self._role("worker", "--capabilities", f"local/{sample.capability}")
        await worker.start()
        try:
            await worker.ready()
            await self._until_answering(sample, worker)
            capacity, cpu_ms = await self._capacity(sample, worker)
            rate = capacity / 2
            times = await self._paced(sample, rate, worker)
        finally:
            await worker.stop()
        p50, p90, p99 = (round(percentile(times, share), 1) for share in (0.50, 0.90, 0.99))
        bound = BOUND_MS.get(sample.label)
        return Measured(round(capacity, 1), round(rate, 1), p50, p90, p99, bound, round(cpu_ms, 2))

    async def _capacity(self, sample: Sample, worker: Role) -> tuple[float, float]:
        """Answers a second with IN_FLIGHT requests unanswered at any time; CPU of the worker a call in ms.

        All at once would tell more: then every role works on large batches, as it does not where requests
        come one by one. At half of that the cores were busy already.
        """
        await self._burst(sample, PILOT, worker)  # the first ones pay for starting
        marks, used = await self._marks(), worker.cpu_s()
        made = iter(lambda: requests(sample, 1)[0], None)
        sent, rate = await self._load.loop(topics.REQUESTS, made, topics.RESULTS, IN_FLIGHT, self._seconds)
        cpu_ms = (worker.cpu_s() - used) / len(sent) * 1000.0
        await self._answers(sent, marks, worker)
        return rate, cpu_ms

    async def _until_answering(self, sample: Sample, worker: Role) -> None:
        until = time.monotonic() + 30.0
        while True:
            try:
                await self._burst(sample, 1, worker)
            except Failed:
                if time.monotonic() > until:
                    raise
                await asyncio.sleep(0.5)
            else:
                return

    async def _burst(self, sample: Sample, count: int, worker: Role) -> tuple[float, float]:
        """Answers a second, and CPU of the worker a call in ms."""
        sent = requests(sample, count)
        marks, used = await self._marks(), worker.cpu_s()
        await self._load.burst(topics.REQUESTS, sent)
        asked, answered = await self._answers([each.key for each in sent], marks, worker)
        took = max(answered.values()) - min(asked.values())
        return count / max(took, 1) * 1000.0, (worker.cpu_s() - used) / count * 1000.0

    async def _paced(self, sample: Sample, rate: float, worker: Role) -> list[float]:
        warm = int(rate * WARM_UP_S)
        sent = requests(sample, warm + max(10, int(rate * self._seconds)))
        marks = await self._marks()
        await self._load.pace(topics.REQUESTS, sent, rate)
        asked, answered = await self._answers([each.key for each in sent], marks, worker)
        return [float(answered[each.key] - asked[each.key]) for each in sent[warm:]]

    async def _marks(self) -> tuple[Any, Any]:
        return await self._load.ends(topics.REQUESTS), await self._load.ends(topics.RESULTS)

    async def _answers(
        self, sent: Sequence[bytes], marks: tuple[Any, Any], worker: Role
    ) -> tuple[dict[bytes, int], dict[bytes, int]]:
        """Append times by id in ms, of requests and answers."""
        until = time.monotonic() + WAIT_S
        while sum((await self._load.ends(topics.RESULTS)).values()) - sum(marks[1].values()) < len(sent):
            for role in (*self.roles, worker):
                role.check()
            if time.monotonic() > until:
                raise Failed(f"{len(sent)} answers did not come within {WAIT_S:.0f} s")
            await asyncio.sleep(0.05)
        asked = {record.key: record.timestamp for record in await self._load.read(topics.REQUESTS, marks[0])}
        records = await self._load.read(topics.RESULTS, marks[1])
        answered = {record.key: record.timestamp for record in records}
        wanted = set(sent)
        if answered.keys() != wanted or len(records) != len(wanted):
            raise Failed(
                f"{len(wanted - answered.keys())} of {len(wanted)} requests lost, or some answered twice"
            )
        for record in records:
            answer = codec.decode(record.value, Result)
            if answer.status != "ok":
                raise Failed(f"a request was answered with {answer.status}: {answer.error}")
        return asked, answered


def requests(sample: Sample, count: int) -> list[Sent]:
    made = []
    prefix = f"b{time.monotonic_ns():x}"
    for number in range(count):
        name = f"{prefix}-{number:06d}"
        request = Request(
            id=name,
            task=_task(sample),
            inputs=sample.inputs,
            params=sample.params,
            deadline_ms=MAX_DEADLINE_MS,
        )
        made.append(
            Sent(name.encode(), codec.encode(request), headers.build("request", name, "edgeway/bench"))
        )
    return made


async def run(
    chosen: Sequence[Sample], seconds: float, folder: Path, console: Console
) -> dict[str, Measured]:
    """The figures by capability; where there are none the console says why.

    Raises:
        Failed: router or aggregator do not start.
    """
    path = folder / "rules.json"
    path.write_text(json.dumps(rules(chosen)), encoding="utf-8")
    found: dict[str, Measured] = {}
    async with EmbeddedKafka() as kafka:
        settings = Settings(kafka=kafka.bootstrap, rules=path, partitions=PARTITIONS)
        await apply_topics(settings, topics.topics_for(rules_of(settings), PARTITIONS))
        load = Load(kafka.bootstrap, PARTITIONS)
        await load.start()
        bench = Bench(kafka.bootstrap, path, folder, load, seconds)
        try:
            await asyncio.gather(*(role.start() for role in bench.roles))
            await asyncio.gather(*(role.ready() for role in bench.roles))
            for sample in chosen:
                try:
                    with console.status(sample.label):
                        found[sample.label] = await bench.measure(sample)
                except Failed as error:
                    console.print(f"[red]{sample.label}: no figures:[/red] {error}", highlight=False)
        finally:
            await asyncio.gather(*(role.stop() for role in bench.roles))
            await load.stop()
    return found


def table(found: dict[str, Measured]) -> Table:
    made = Table(title=f"The library at half its capacity, one worker process, {os.cpu_count()} cores")
    for name in ("capability", "capacity/s", "at/s", "p50 ms", "p90 ms", "p99 ms", "bound", "CPU ms a call"):
        made.add_column(name, justify="left" if name == "capability" else "right")
    for name, figures in found.items():
        bound = (
            "-" if figures.bound_ms is None else f"{figures.bound_ms:g} {'met' if figures.met else 'MISSED'}"
        )
        columns = (figures.capacity_rps, figures.rate_rps, figures.p50_ms, figures.p90_ms, figures.p99_ms)
        made.add_row(name, *(f"{column:,}" for column in columns), bound, str(figures.worker_cpu_ms))
    return made


def main() -> int:
    given = parsed()
    console = Console(stderr=not sys.stdout.isatty())
    with tempfile.TemporaryDirectory(prefix="edgeway-bench-") as name:
        folder = Path(name)
        chosen = [
            sample
            for sample in samples(folder)
            if given.only is None or any(part in sample.label for part in given.only)
        ]
        if not chosen:
            console.print(f"no capability is named like {', '.join(given.only)}")
            return 2
        try:
            found = uvloop.run(run(chosen, given.seconds, folder, console))
        except (Failed, EmbeddedKafkaError) as error:
            console.print(f"[red]no figures:[/red] {error}", highlight=False)
            return 1
    if given.json is not None:
        shown = {label: asdict(figures) | {"met": figures.met} for label, figures in found.items()}
        given.json.write_text(json.dumps(shown, indent=2) + "\n", encoding="utf-8")
    Console(width=None if sys.stdout.isatty() else 120).print(table(found))
    return 0 if len(found) == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
