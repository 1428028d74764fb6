"""Real questions at real arrival times, and what their labels say of the answers: material for a backtest.

    python -m benchmarks.traffic --kafka 127.0.0.1:9092 --questions banking77/test.csv \
        --arrivals traffic/generic_chat_mix.jsonl --count 600 --speed 12

sends questions to a running Edgeway when the trace says (the trace again from its start where it ends), waits
for the answers and gives feedback on each.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from edgeway import kafka
from edgeway.client_records import read_result, ready
from edgeway.tail import Tail
from schemas import codec, headers, topics
from schemas.messages import Feedback, Request, Result
from streams.settings import Settings

WAIT_S = 60.0


class Question(NamedTuple):
    """A question, its right answer, and when it is asked, in s from the start."""

    id: str
    text: str
    intent: str
    at: float


def questions(rows: Sequence[dict[str, str]], times: Sequence[float], prefix: str) -> list[Question]:
    """Each row at its time; a trace that is too short goes on from its start."""
    length = times[-1] + 1.0
    return [
        Question(
            f"{prefix}-{n}", row["text"], row["category"], times[n % len(times)] + n // len(times) * length
        )
        for n, row in enumerate(rows)
    ]


async def send(settings: Settings, asked: Sequence[Question], speed: float) -> dict[str, Result]:
    """Ask, `speed` times as fast as the trace; the answers by id."""
    answers: dict[str, Result] = {}
    async with Tail(settings, topics.RESULTS) as tail, kafka.producer(settings) as producer:
        counts = await kafka.partition_counts(settings, topics.REQUESTS)

        async def listen() -> None:
            while len(answers) < len(asked):
                for record in await tail.more(100):
                    result = read_result(record)
                    if result is not None and result.id.startswith(asked[0].id.partition("-")[0]):
                        answers.setdefault(result.id, result)

        listening = asyncio.create_task(listen())
        loop = asyncio.get_running_loop()
        began = loop.time()
        for one in asked:
            await asyncio.sleep(max(0.0, began + one.at / speed - loop.time()))
            record = ready(Request(id=one.id, task="intent", inputs={"text": one.text}), "json", one.id)
            place = topics.partition_for(record.key, counts[topics.REQUESTS])
            await producer.send(
                topics.REQUESTS, record.value, record.key, partition=place, headers=record.headers
            )
        await asyncio.wait_for(listening, WAIT_S)
    return answers


async def tell(settings: Settings, asked: Sequence[Question], answers: dict[str, Result]) -> int:
    """Feedback on each answer; how many were right."""
    right = 0
    async with kafka.producer(settings) as producer:
        for one in asked:
            output = answers[one.id].output
            good = isinstance(output, dict) and output.get("intent") == one.intent
            right += good
            said = Feedback(id=one.id, verdict="right" if good else "wrong")
            made = headers.build("feedback", one.id, "benchmarks/traffic")
            await producer.send_and_wait(topics.FEEDBACK, codec.encode(said), one.id.encode(), headers=made)
    return right


def main() -> None:
    """Send, wait, give feedback, say how it went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kafka", required=True)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--arrivals", type=Path, required=True)
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--first", type=int, default=0, help="leave out so many of the shuffled questions")
    parser.add_argument("--speed", type=float, default=12.0)
    parser.add_argument("--prefix", default="asked")
    args = parser.parse_args()
    with args.questions.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    random.Random(1).shuffle(rows)
    times = [json.loads(line)["timestamp"] for line in args.arrivals.read_text("utf-8").splitlines()]
    asked = questions(rows[args.first : args.first + args.count], times, args.prefix)
    settings = Settings(kafka=args.kafka)
    answers = asyncio.run(send(settings, asked, args.speed))
    right = asyncio.run(tell(settings, asked, answers))
    cloud = sum("cloud" in answer.sides.values() for answer in answers.values())
    print(f"{len(answers)} answered, {right} right, {cloud} by the cloud", file=sys.stderr)


if __name__ == "__main__":
    main()
