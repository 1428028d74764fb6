"""What a caller of the gateway waits for: `python -m benchmarks.gateway [--rate R] [--seconds S]`.

Gateway, router, aggregator, an edge worker, a cloud worker, the cloud's HTTP service (300 ms away) and an
embedded Kafka, each a process of its own, and this program; all share the machine. Requests come at a steady
rate, whatever comes back (open loop), and are timed from when each was due.

1. floor: a Starlette handler that writes a record to Kafka and waits for its copy by a bare loop.
2. local: one step at the edge. `beyond` is the time without that in the model (`timings.service_ms`).
3. mixed: of ten requests one goes to the cloud.
4. waiting: so many callers at once, each on a connection of its own, for whom the cloud takes 300 ms.
5. flood: more callers at once than the gateway takes; it must shed with 429 or 503 and Retry-After, answer
   all that it took, and keep its memory.

Exit code 1 where an answer was missing, or the share of `ok` is below 99.9 %.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks.http_load import Caller, Reply, at_once, paced
from benchmarks.measure import percentile
from benchmarks.processes import Failed, Role, free_port
from edgeway.embedded import BrokerSettings, EmbeddedKafka
from edgeway.rules_of import rules_of
from edgeway.topics_admin import apply_topics
from schemas.topics import TopicSpec, topics_for
from streams.settings import Settings

PARTITIONS = 6
OK_SHARE = 0.999
WARM_UP_S = 20.0
"""So long at the same rate first: a Java broker that has just started runs half of its code uncompiled."""
CLOUD_EVERY = 10
QUICK, FAR = "quick", "far"


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", type=float, default=200.0, help="requests a second (default 200)")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each measurement (default 30)")
    parser.add_argument("--waiting", type=int, default=2000, help="callers that wait at once (default 2000)")
    parser.add_argument("--flood", type=int, default=10_000, help="callers of the flood (default 10000)")
    parser.add_argument("--capacity", type=int, default=4000, help="--gateway-open of the gateway")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    return parser.parse_args()


def rules(cloud_port: int) -> dict[str, Any]:
    return {
        "apps": [str(Path(__file__).with_name("gateway_app.py"))],
        "builtin": False,
        "privacy": {"detectors": []},
        "cache_s": 0,
        "tasks": {
            QUICK: {"capability": "bench/quick", "side": "local"},
            FAR: {
                "capability": "bench/far",
                "side": "cloud",
                "slow_ms": 5000,
                "fallback_url": f"http://127.0.0.1:{cloud_port}/far",
            },
        },
    }


def times(replies: Sequence[Reply], *, beyond: bool = False) -> dict[str, float]:
    """Percentiles in ms of those that were answered 200; `beyond` leaves the time in models out."""
    found = []
    for reply in replies:
        if reply.status != 200:
            continue
        spent = 0.0
        if beyond:
            steps = json.loads(reply.body).get("timings", {}).values()
            spent = sum(step.get("service_ms", 0.0) for step in steps)
        found.append(reply.ms - spent)
    shares = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {name: round(percentile(found, share), 1) for name, share in shares.items()} if found else {}


def ok_share(replies: Sequence[Reply]) -> float:
    good = sum(reply.status == 200 and json.loads(reply.body)["status"] == "ok" for reply in replies)
    return float(good / len(replies))


def statuses(replies: Sequence[Reply]) -> dict[str, int]:
    return {str(status): count for status, count in sorted(Counter(r.status for r in replies).items())}


class Bench:
    """The processes and what is measured on them."""

    def __init__(self, given: argparse.Namespace, folder: Path, kafka: str) -> None:
        self.given, self.folder, self.kafka = given, folder, kafka
        self.ports = {name: free_port() for name in ("gateway", "cloud", "floor")}
        self.rules = folder / "rules.json"
        self.rules.write_text(json.dumps(rules(self.ports["cloud"])))
        self.roles: dict[str, Role] = {}
        self.figures: dict[str, Any] = {}

    async def start(self, name: str, *arguments: str) -> None:
        role = self.roles[name] = Role(name, arguments, self.folder)
        await role.start()
        await role.ready()

    async def edgeway(self, name: str, role: str, *more: str) -> None:
        common = ("--kafka", self.kafka, "--rules", str(self.rules))
        await self.start(name, "-m", "edgeway", role, *common, *more)

    async def stop(self, *names: str) -> None:
        for name in names:
            await self.roles.pop(name).stop()

    def caller(self, port: int, task: Any) -> Caller:
        return Caller(
            "127.0.0.1",
            port,
            lambda _number: "/route",
            lambda number: {"task": task(number), "text": f"where is my card {number}"},
        )

    async def measure(self, label: str, caller: Caller, *, beyond: bool = False) -> list[Reply]:
        rate, seconds = self.given.rate, self.given.seconds
        warm = await paced(caller, rate, int(rate * WARM_UP_S))
        cpu = {name: role.cpu_s() for name, role in self.roles.items()}
        replies = await paced(caller, rate, int(rate * seconds), first=len(warm))
        used = {name: (role.cpu_s() - cpu[name]) / len(replies) * 1000 for name, role in self.roles.items()}
        self.figures[label] = {
            "requests": len(replies),
            "ok": round(ok_share(replies), 5),
            "statuses": statuses(replies),
            "whole_ms": times(replies),
            "cpu_ms": {name: round(value, 3) for name, value in used.items()},
        }
        if beyond:
            self.figures[label]["beyond_ms"] = times(replies, beyond=True)
        return replies

    async def floor(self) -> None:
        await self.start("echo", "-m", "benchmarks.gateway_parts", "echo", self.kafka)
        await self.start(
            "floor", "-m", "benchmarks.gateway_parts", "floor", self.kafka, str(self.ports["floor"])
        )
        await self.measure("floor", self.caller(self.ports["floor"], lambda _number: QUICK))
        await self.stop("floor", "echo")

    async def system(self) -> None:
        await self.start("cloud", "-m", "benchmarks.gateway_parts", "cloud", str(self.ports["cloud"]))
        await self.edgeway("edge-worker", "worker", "--capabilities", "local/bench/quick")
        await self.edgeway("cloud-worker", "worker", "--capabilities", "cloud/bench/far")
        await self.edgeway("aggregator", "aggregator")
        await self.edgeway("router", "router")
        capacity = ("--gateway-open", str(self.given.capacity))
        await self.edgeway("gateway", "gateway", "--port", str(self.ports["gateway"]), *capacity)
        await asyncio.sleep(3.0)

    async def gateway(self) -> None:
        port = self.ports["gateway"]
        await self.measure("local", self.caller(port, lambda _number: QUICK), beyond=True)

        def every_tenth(number: int) -> str:
            return QUICK if number % CLOUD_EVERY else FAR

        replies = await self.measure("mixed", self.caller(port, every_tenth), beyond=True)
        far = [reply for reply in replies if reply.number % CLOUD_EVERY == 0]
        near = [reply for reply in replies if reply.number % CLOUD_EVERY]
        self.figures["mixed"]["cloud_ms"] = times(far)
        self.figures["mixed"]["local_beyond_ms"] = times(near, beyond=True)

    async def crowd(self, label: str, count: int) -> None:
        """`count` callers at once; the callers of a flood that were refused are not asked again."""
        before = self.roles["gateway"].rss_mb()
        replies = await at_once(self.caller(self.ports["gateway"], lambda _number: QUICK), count)
        refused = [reply for reply in replies if reply.status in (429, 503)]
        taken = [reply for reply in replies if reply.status not in (429, 503)]
        self.figures[label] = {
            "callers": count,
            "statuses": statuses(replies),
            "taken_ok": round(ok_share(taken), 5) if taken else 0.0,
            "refused_with_retry_after": sum(reply.wait_s is not None for reply in refused),
            "refused": len(refused),
            "whole_ms": times(replies),
            "gateway_rss_mb": [round(before, 1), round(self.roles["gateway"].rss_mb(), 1)],
        }


async def run(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    async with EmbeddedKafka(BrokerSettings(long_lived=True)) as kafka:
        bench = Bench(given, folder, kafka.bootstrap)
        settings = Settings(kafka=kafka.bootstrap, rules=bench.rules, partitions=PARTITIONS)
        specs = (
            *topics_for(rules_of(settings), PARTITIONS),
            TopicSpec("floor.in", 6),
            TopicSpec("floor.out", 6),
        )
        await apply_topics(settings, specs)
        try:
            await bench.floor()
            await bench.system()
            await bench.gateway()
            if given.waiting:
                await bench.crowd("waiting", given.waiting)
            if given.flood:
                await bench.crowd("flood", given.flood)
        finally:
            await bench.stop(*list(bench.roles))
        return bench.figures


def show(figures: dict[str, Any], console: Console) -> None:
    table = Table(
        "", "p50 ms", "p90", "p95", "p99", "most", "ok", "p50 of floor", title="Through the gateway"
    )
    floor = figures["floor"]["whole_ms"]["p50"]
    for label, part in figures.items():
        for name, found in part.items():
            if not name.endswith("_ms") or name == "cpu_ms" or not found:
                continue
            share = part.get("ok", part.get("taken_ok", 0.0))
            row = [f"{found[key]:.1f}" for key in ("p50", "p90", "p95", "p99", "max")]
            table.add_row(
                f"{label}, {name[:-3]}", *row, f"{share:.2%}", f"{found['p50'] / max(floor, 0.1):.1f}"
            )
    console.print(table)


def main() -> int:
    given, console = parsed(), Console(stderr=True)
    most = max(given.flood, given.waiting) * 2 + 500
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(most, hard)), hard))
    with tempfile.TemporaryDirectory(prefix="edgeway-bench-") as folder:
        try:
            figures = uvloop.run(run(given, Path(folder)))
        except Failed as error:
            console.print(str(error), markup=False)
            return 1
    show(figures, console)
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")
    if given.json is not None:
        given.json.write_text(json.dumps(figures, indent=2), encoding="utf-8")
    shares = [part.get("ok", part.get("taken_ok", 1.0)) for part in figures.values()]
    return 0 if min(shares) >= OK_SHARE else 1


if __name__ == "__main__":
    sys.exit(main())
