"""Records that cannot be read, and records that kill."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path

from tests.faults.harness.cluster import CAPABILITIES, Cluster, cluster, usual
from tests.faults.harness.collector import Collector
from tests.faults.harness.load import Load, Sent, mixed, request
from tests.faults.harness.report import Report, report_of
from tests.faults.harness.runs import SETTLE_S, Size, judge, under_load, warm_up

MALFORMED, OVERSIZED, WRONG_VERSION = 100, 10, 10
BIG = 1_100_000
"""More than the 1 MiB of a record, less than the 2 MiB of the topic."""


def odd(name: str, number: int) -> tuple[bytes, str | None]:
    """A malformed record and the code of its answer; None where no id can be read."""
    half = json.dumps({"id": name, "task": "light", "inputs": {"n": number, "text": "x" * 40}}).encode()
    forms: tuple[tuple[bytes, str | None], ...] = (
        (half[:-20], "malformed"),
        (json.dumps({"id": name, "task": "light", "inputs": 7}).encode(), "malformed"),
        (os.urandom(64) + b"\xc1", None),
        (b"", None),
    )
    return forms[number % len(forms)]


def oddities() -> Iterator[tuple[str, bytes, str | None]]:
    """All odd records: a name, the bytes, and the expected error code where the name can be read."""
    for number in range(MALFORMED):
        name = f"bad-{number}"
        yield name, *odd(name, number)
    for number in range(OVERSIZED):
        name = f"big-{number}"
        yield name, json.dumps({"id": name, "task": "light", "text": "x" * BIG}).encode(), "too_large"
    for number in range(WRONG_VERSION):
        name = f"ver-{number}"
        body = {"v": 99, "id": name, "task": "light", "inputs": {"n": number}}
        yield name, json.dumps(body).encode(), "unsupported_version"


async def odd_records(folder: Path, size: Size) -> Report:
    """Odd records among good ones: dead letters and error results for them, nothing for the others."""
    expected = {name: code for name, _, code in oddities() if code is not None}
    async with cluster(folder) as at:
        await usual(at)
        async with Collector(at.bootstrap) as collector, Load(at.bootstrap) as load:
            await warm_up(load, collector)
            strange = asyncio.create_task(_put_all(load, size.lasts_s))
            await load.run(mixed(size.deadline_ms), size.requests, size.rate)
            await strange
            await load.flush()
            wait_s = size.deadline_ms / 1000 + 15.0
            await collector.until([*load.sent.acknowledged, *expected], wait_s)
            await asyncio.sleep(SETTLE_S)
            report = judge(
                await report_of("odd-records", at, load.sent, collector.answers, size.deadline_ms),
                ok_share=1.0,
            )
    got = {name: collector.answers[name][0].code for name in expected if name in collector.answers}
    report.more |= {"error_results_expected": len(expected), "error_results": len(got)}
    report.expect(
        len(got) == len(expected), f"{len(expected) - len(got)} odd records with an id got no answer"
    )
    wrong = {name: code for name, code in got.items() if code != expected[name]}
    report.expect(not wrong, f"answers with another code: {dict(list(wrong.items())[:5])}")
    total = sum(report.dead_letters.values())
    report.expect(total == MALFORMED + OVERSIZED + WRONG_VERSION, f"{total} dead letters")
    return report


async def _put_all(load: Load, seconds: float) -> None:
    every = list(oddities())
    for name, body, _ in every:
        await load.put(None, body, key=name.encode())
        await asyncio.sleep(seconds / len(every))


async def killer(folder: Path, size: Size) -> Report:
    """A record whose handler kills its process: dead-lettered at the third try, all others answered."""
    async with cluster(folder) as at:
        await usual(at, capabilities=(*CAPABILITIES, "fault/killer"))

        async def faults(at: Cluster, _: Sent) -> None:
            await asyncio.sleep(0.0)

        def requests() -> Iterator[tuple[str, bytes]]:
            rest = mixed(size.deadline_ms)
            for number in range(size.requests):
                if number == size.requests // 4:
                    yield request("r-killer", "killer", number, size.deadline_ms, kill=True)
                elif number % 5 == 0:
                    yield request(f"r-spared-{number}", "killer", number, size.deadline_ms)
                else:
                    yield next(rest)

        report = await under_load("killer", at, size, faults, requests=requests())
    judge(report, ok_share=(report.requests - 1) / report.requests)
    report.expect(report.errors == {"killed_its_process": 1}, f"errors were {report.errors}")
    report.expect(
        report.dead_letters == {"killed_its_process": 1}, f"dead letters were {report.dead_letters}"
    )
    deaths = sum(len(codes) for codes in report.unasked_exits.values())
    report.expect(deaths == 3, f"{deaths} processes died: {report.unasked_exits}")
    return report


async def plain_json(folder: Path, size: Size) -> Report:
    """JSON without headers or key from a plain client is answered on `results`."""
    async with cluster(folder) as at:
        await usual(at, workers=1)
        async with Collector(at.bootstrap) as collector, Load(at.bootstrap) as load:
            await load.put(None, b'{"id": "plain", "task": "light", "n": 3}')
            left = await collector.until(["plain"], 20.0)
            report = Report(scenario="plain-json", requests=1, answered=1 - len(left))
            report.expect(not left, "the plain record got no answer")
            if not left:
                report.expect(
                    collector.answers["plain"][0].status == "ok", f"{collector.answers['plain'][0]}"
                )
            return report
