"""How long callers wait after an aggregator with many open joins was killed.

    python -m benchmarks.takeover [--joins 1000 5000 20000] [--answered 0.1]

A broker of its own, one aggregator under a slot. Plans are written to `joins` as a router writes them; a part
of the requests is answered before the kill, behind the first open one, so that all of their records are read
again. Right after the SIGKILL the workers' answers to all that is open are written, and the aggregator is
started again. Times count from the kill and hold the start of a Python process and its way into the group.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from benchmarks.processes import Failed, Role
from edgeway.embedded import BrokerSettings, EmbeddedKafka
from edgeway.rules_of import rules_of
from edgeway.topics_admin import apply_topics
from schemas import codec
from schemas.ids import subtask_id
from schemas.messages import Attempt, Partial, Plan, RequestInfo, Result, Step
from schemas.topics import JOINS, RESULTS, group_of, partition_for, topics_for
from streams.settings import Settings

PARTITIONS = 6
DEADLINE_MS = 300_000
WAIT_S = 120.0
SETTLE_S = 1.5
"""So long after the last answer a second one of somebody may still come."""
TEXT = "What countries are you currently in? " * 4


@dataclass(frozen=True, slots=True)
class Taken:
    """One takeover. Times in s from the SIGKILL; `backlog` is how many records of `joins` were read again;
    `repeated` are the requests answered before it and again after it, `failed` those answered after it
    otherwise than `ok`."""

    joins: int
    backlog: int
    ready_s: float
    first_s: float
    last_s: float
    repeated: int
    failed: int
    missing: int

    @property
    def records_per_s(self) -> float:
        """Backlog by the time from the process being ready to the last answer, reading and answering."""
        return self.backlog / max(1e-3, self.last_s - self.ready_s)


class Answers:
    """What stands on `results`: when each id was first answered, how, and how often."""

    def __init__(self) -> None:
        self.times: Counter[str] = Counter()
        self.at: dict[str, float] = {}
        self.failed: set[str] = set()

    async def follow(self, bootstrap: str) -> None:
        async with AIOKafkaConsumer(
            bootstrap_servers=bootstrap, auto_offset_reset="earliest", fetch_max_wait_ms=50
        ) as consumer:
            consumer.assign([TopicPartition(RESULTS, number) for number in range(PARTITIONS)])
            while True:
                for records in (await consumer.getmany(timeout_ms=100)).values():
                    for record in records:
                        self._take(codec.decode(record.value or b"", Result))

    async def until(self, names: Sequence[str], wait_s: float) -> None:
        """Wait until all of `names` are answered, `wait_s` at most."""
        until = time.monotonic() + wait_s
        while not all(name in self.at for name in names) and time.monotonic() < until:
            await asyncio.sleep(0.05)

    def _take(self, result: Result) -> None:
        self.times[result.id] += 1
        self.at.setdefault(result.id, time.monotonic())
        if result.status != "ok":
            self.failed.add(result.id)


def plan_of(name: str, now: int) -> Plan:
    """A request of one step with a way out, as a router plans it."""
    attempts = (
        Attempt(side="local", triggers=("first",), capability="nlp/intent"),
        Attempt(side="cloud", triggers=("weak", "failed"), capability="nlp/intent"),
    )
    request = RequestInfo(id=name, accepted=now, deadline=now + DEADLINE_MS, digest="0" * 32)
    step = Step(name="intent", capability="nlp/intent", attempts=attempts, threshold=0.9)
    return Plan(request=request, rules="0123456789ab", steps=(step,), inputs={"text": TEXT})


def partial_of(name: str, now: int) -> Partial:
    """The good answer of its worker."""
    output = {"label": "country_support", "probabilities": [0.1] * 20}
    subtask = subtask_id(name, "intent", "local", 0)
    return Partial(subtask=subtask, deadline=now + DEADLINE_MS, output=output, confidence=0.99)


async def take_over(bootstrap: str, folder: Path, run: str, joins: int, answered: int) -> Taken:
    """Kill an aggregator with `joins` open, `answered` answered behind them, and start it again.

    Raises:
        Failed: the aggregator does not start, or does not answer before the kill.
    """
    opened = [f"{run}-open-{number}" for number in range(joins)]
    done = [f"{run}-done-{number}" for number in range(answered)]
    answers, now = Answers(), int(time.time() * 1000)
    command = ["-m", "edgeway", "aggregator", "--kafka", bootstrap, "--slot", "aggregator-0"]
    async with (
        _following(bootstrap, answers),
        AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=5, acks="all") as producer,
    ):
        first, second = (Role(f"aggregator-{run}-{number}", command, folder) for number in (1, 2))
        await first.start()
        await first.ready()
        try:
            await _write(producer, ((name, plan_of(name, now)) for name in opened))
            await _write(producer, ((name, plan_of(name, now)) for name in done))
            await _write(producer, ((name, partial_of(name, now)) for name in done))
            await answers.until(done, WAIT_S)
            if not all(name in answers.at for name in done):
                raise Failed(f"{first.name} does not answer before the kill")
            await asyncio.sleep(1.0)  # what is finished is committed within that time
        finally:
            killed = time.monotonic()
            await first.kill()
        await _write(producer, ((name, partial_of(name, now)) for name in opened))
        backlog = await _backlog(bootstrap)
        await second.start()
        try:
            await second.ready()
            ready = time.monotonic()
            await answers.until(opened, WAIT_S)
            await asyncio.sleep(SETTLE_S)
        finally:
            await second.stop()
    after = [answers.at[name] - killed for name in opened if name in answers.at]
    return Taken(
        joins=joins,
        backlog=backlog,
        ready_s=ready - killed,
        first_s=min(after, default=WAIT_S),
        last_s=max(after, default=WAIT_S),
        repeated=sum(answers.times[name] > 1 for name in (*done, *opened)),
        failed=len(answers.failed),
        missing=sum(name not in answers.at for name in opened),
    )


@contextlib.asynccontextmanager
async def kafka() -> AsyncIterator[str]:
    """The address of a broker with the topics."""
    async with EmbeddedKafka(BrokerSettings()) as at:
        settings = Settings(kafka=at.bootstrap, partitions=PARTITIONS, replication=1)
        report = await apply_topics(settings, topics_for(rules_of(settings), PARTITIONS))
        if not report.good:
            raise Failed(str(report.problems))
        yield at.bootstrap


@contextlib.asynccontextmanager
async def _following(bootstrap: str, answers: Answers) -> AsyncIterator[None]:
    task = asyncio.create_task(answers.follow(bootstrap))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _write(producer: Any, records: Iterable[tuple[str, Plan | Partial]]) -> None:
    sent = []
    for name, message in records:
        key = name.encode()
        partition = partition_for(key, PARTITIONS)
        sent.append(await producer.send(JOINS, codec.encode(message), key=key, partition=partition))
    await asyncio.gather(*sent)


async def _backlog(bootstrap: str) -> int:
    """Records between the committed offsets and the ends."""
    places = [TopicPartition(JOINS, number) for number in range(PARTITIONS)]
    async with AIOKafkaConsumer(
        bootstrap_servers=bootstrap, group_id=group_of(JOINS), enable_auto_commit=False
    ) as consumer:
        consumer.assign(places)
        ends = await consumer.end_offsets(places)
        return sum([ends[place] - (await consumer.committed(place) or 0) for place in places])


async def main(sizes: Sequence[int], answered: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with kafka() as bootstrap:
            print(
                "| open joins | records read again | ready s | first answer s | last answer s | records/s |"
            )
            print("|---|---|---|---|---|---|")
            for number, joins in enumerate(sizes):
                taken = await take_over(bootstrap, Path(folder), f"t{number}", joins, int(joins * answered))
                print(
                    f"| {taken.joins:,} | {taken.backlog:,} | {taken.ready_s:.1f} | {taken.first_s:.1f} "
                    f"| {taken.last_s:.1f} | {taken.records_per_s:,.0f} |",
                    flush=True,
                )
                wrong = f"{taken.repeated} repeated, {taken.failed} failed, {taken.missing} missing"
                if taken.repeated or taken.failed or taken.missing:
                    raise Failed(wrong)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--joins", type=int, nargs="+", default=[1_000, 5_000, 20_000])
    parser.add_argument("--answered", type=float, default=0.1)
    given = parser.parse_args()
    asyncio.run(main(given.joins, given.answered))
