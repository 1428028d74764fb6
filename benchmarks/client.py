"""Requests per second of `map` over Kafka and through the gateway, on a local `edgeway up` of its own.

    python benchmarks/client.py --requests 5000 --concurrency 64

Prints, for each client, requests/s, and the CPU time of this process per request, the best of three rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path

import edgeway
from edgeway.embedded import BrokerSettings, EmbeddedKafka
from tests.helpers.roles import Role

ROUNDS = 3
APP = """
from workers.sdk import capability

@capability("local/test/echo")
def echo(text: str) -> str:
    return text
"""
RULES = {"apps": ["app.py"], "tasks": {"echo": {"capability": "test/echo", "side": "local"}}}


async def asynchronous(url: str, count: int, concurrency: int) -> tuple[float, float]:
    """Seconds and CPU seconds of one round."""
    async with edgeway.Client(url) as client:
        await client.route("echo", inputs={"text": "first"})
        wall, cpu = time.perf_counter(), time.process_time()
        results = client.map((f"text {n}" for n in range(count)), "echo", concurrency=concurrency)
        good = [result.status async for result in results].count("ok")
        took = time.perf_counter() - wall, time.process_time() - cpu
    assert good == count, f"{count - good} of {count} failed"
    return took


def synchronous(url: str, count: int, concurrency: int) -> tuple[float, float]:
    """The same without an event loop."""
    with edgeway.SyncClient(url) as client:
        client.route("echo", inputs={"text": "first"})
        wall, cpu = time.perf_counter(), time.process_time()
        results = client.map((f"text {n}" for n in range(count)), "echo", concurrency=concurrency)
        good = [result.status for result in results].count("ok")
        took = time.perf_counter() - wall, time.process_time() - cpu
    assert good == count, f"{count - good} of {count} failed"
    return took


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--concurrency", type=int, default=64)
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="edgeway-bench-"))
    (folder / "app.py").write_text(APP)
    (folder / "rules.json").write_text(json.dumps(RULES))
    kafka = EmbeddedKafka(BrokerSettings())
    kafka.start_sync()
    role = Role(folder, "up", "--kafka", kafka.bootstrap, "--rules", str(folder / "rules.json")).start()
    try:
        role.wait_ready()
        for url in (f"kafka://{kafka.bootstrap}", f"http://127.0.0.1:{role.port}"):
            for name in ("Client", "SyncClient"):
                rounds: list[tuple[float, float]] = []
                for _ in range(ROUNDS):
                    if name == "Client":
                        rounds.append(asyncio.run(asynchronous(url, args.requests, args.concurrency)))
                    else:
                        rounds.append(synchronous(url, args.requests, args.concurrency))
                best, cpu = min(wall for wall, _ in rounds), min(cpu for _, cpu in rounds)
                scheme = url.partition(":")[0]
                print(
                    f"{name:10} {scheme:5} {args.requests / best:7.0f} requests/s,"
                    f" {cpu / args.requests * 1e6:5.0f} us of CPU each"
                )
    finally:
        role.kill()
        kafka.stop_sync()


if __name__ == "__main__":
    main()
