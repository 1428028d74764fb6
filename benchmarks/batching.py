"""What batching across requests gives: one worker, rows one by one and in batches.

`python benchmarks/batching.py --json FILE`. The Crayfish model, and a transformer of the size of a small
sentence encoder with random weights. First the worker alone, in this process: its throughput with 64 (8)
clients that each wait for their answer, then latencies at 0.9 of the throughput without batches, both ways.
Then a worker process on an embedded Kafka: a burst, and latencies at half of the throughput without batches.
Each figure is the best of `--runs`, since what else the machine does can only make it worse.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

ROOT = str(Path(__file__).resolve().parents[1])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

import numpy as np  # noqa: E402
import uvloop  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from benchmarks import engine_load, transformer, worker_kafka  # noqa: E402
from benchmarks.measure import percentile  # noqa: E402
from benchmarks.processes import Failed  # noqa: E402
from benchmarks.worker_app import CRAYFISH  # noqa: E402

LOAD = 0.9
KAFKA_LOAD = 0.5
WARM_UP = 0.1
BATCH = 32


class Model(NamedTuple):
    """A model under test: its file and input, rows of a throughput run, and clients that wait."""

    name: str
    path: Path
    source: str
    inputs: list[dict[str, Any]]
    rows: int
    clients: int


def models(folder: Path, share: float) -> list[Model]:
    """Both; the transformer is built."""
    random = np.random.default_rng(7)
    images = [{"x": random.random(784, dtype=np.float32).astype("<f4").tobytes()} for _ in range(64)]
    path = folder / "transformer.onnx"
    transformer.build(path)
    tokens = random.integers(0, transformer.WORDS, (64, transformer.LENGTH))
    texts = [{"x": row.astype("<f4").tobytes()} for row in tokens]
    return [
        Model("crayfish", CRAYFISH, "input", images, int(20_000 * share), 64),
        Model("transformer", path, "ids", texts, int(400 * share), 8),
    ]


async def alone(model: Model, runs: int, seconds: float) -> dict[str, Any]:
    """The worker in this process."""
    async with (
        engine_load.Bench(model.path, model.source, model.inputs, 1) as single,
        engine_load.Bench(model.path, model.source, model.inputs, BATCH) as batched,
    ):
        both = {"one_by_one": single, "batched": batched}
        closed: dict[str, list[engine_load.Figures]] = {name: [] for name in both}
        opened: dict[str, list[engine_load.Figures]] = {name: [] for name in both}
        for bench in both.values():
            await bench.closed(max(32, int(model.rows * WARM_UP)), model.clients)
        # In turns, so that both meet the same machine.
        for _ in range(runs):
            for name, bench in both.items():
                closed[name].append(await bench.closed(model.rows, model.clients))
        rate = LOAD * max(each.rate for each in closed["one_by_one"])
        for _ in range(runs):
            for name, bench in both.items():
                opened[name].append(await bench.opened(rate, seconds))
    found = {
        name: {
            "closed": asdict(max(closed[name], key=lambda each: each.rate)),
            "open": asdict(min(opened[name], key=lambda each: each.p95_ms)),
        }
        for name in both
    }
    return {"offered": round(rate, 1), **found, **_ratios(found)}


def _ratios(found: dict[str, Any]) -> dict[str, float]:
    single, batched = found["one_by_one"], found["batched"]
    return {
        "throughput_ratio": round(batched["closed"]["rate"] / single["closed"]["rate"], 2),
        "cpu_ratio": round(single["closed"]["cpu_ms"] / batched["closed"]["cpu_ms"], 2),
        "closed_p95_ratio": round(batched["closed"]["p95_ms"] / single["closed"]["p95_ms"], 3),
        "open_p95_ratio": round(batched["open"]["p95_ms"] / single["open"]["p95_ms"], 3),
    }


async def over_kafka(model: Model, runs: int, seconds: float, folder: Path) -> dict[str, Any]:
    """A worker process between topics."""
    found: dict[str, Any] = {}
    rate = 0.0
    subtasks = worker_kafka.Subtasks(model.inputs)
    async with worker_kafka.bench(folder) as at:
        for name, most in (("one_by_one", 1), ("batched", BATCH)):
            environment = {
                "BENCH_MAX_BATCH": str(most),
                "BENCH_MODEL": str(model.path),
                "BENCH_INPUT": model.source,
            }
            role = at.worker(f"worker-{model.name}-{most}", environment)
            await role.start()
            try:
                await role.ready()
                letter = name[0]
                await worker_kafka.stream(
                    at, role, subtasks, f"{letter}warm-up", max(64, model.rows // 10), _silent
                )
                rates, shares = [], []
                for run in range(runs):
                    used = role.cpu_s()
                    took = await worker_kafka.stream(
                        at, role, subtasks, f"{letter}burst{run:02d}", model.rows, _silent
                    )
                    rates.append(model.rows / took)
                    shares.append((role.cpu_s() - used) / model.rows * 1000.0)
                rate = rate or KAFKA_LOAD * max(rates)
                times = [
                    await worker_kafka.paced(at, role, subtasks, f"{letter}paced{run:02d}", rate, seconds)
                    for run in range(runs)
                ]
            finally:
                await role.stop()
            p95 = [percentile(each, 0.95) for each in times]
            found[name] = {
                "rate": round(max(rates), 1),
                "cpu_ms": round(min(shares), 4),
                "p95_ms": min(p95),
                "p50_ms": min(percentile(each, 0.5) for each in times),
            }
    single, batched = found["one_by_one"], found["batched"]
    return {
        "offered": round(rate, 1),
        **found,
        "throughput_ratio": round(batched["rate"] / single["rate"], 2),
        "cpu_ratio": round(single["cpu_ms"] / batched["cpu_ms"], 2),
        "p95_ratio": round(batched["p95_ms"] / single["p95_ms"], 3),
    }


def _silent(_done: int) -> None: ...


async def compare(given: argparse.Namespace, folder: Path, console: Console) -> dict[str, Any]:
    """All figures.

    Raises:
        Failed: a worker ended, or an answer is missing.
    """
    shown: dict[str, Any] = {}
    for model in models(folder, given.share):
        console.print(f"{model.name}: the worker alone")
        shown[model.name] = {"alone": await alone(model, given.runs, given.seconds)}
        if given.kafka:
            console.print(f"{model.name}: over Kafka")
            shown[model.name]["kafka"] = await over_kafka(model, given.runs, given.seconds, folder)
    return shown


def table(shown: dict[str, Any]) -> Table:
    """The figures for people."""
    made = Table(title=f"Batches of {BATCH} at most against one row at a time")
    for name in ("", "rows/s, one by one", "batched", "ratio", "CPU ratio", "p95 ms, one by one", "batched"):
        made.add_column(name, justify="left" if not name else "right")
    for model, parts in shown.items():
        found = parts["alone"]
        single, batched = found["one_by_one"], found["batched"]
        made.add_row(
            f"{model}, alone, waiting clients",
            *_cells(single["closed"], batched["closed"]),
            f"{found['cpu_ratio']}",
            f"{single['closed']['p95_ms']}",
            f"{batched['closed']['p95_ms']}",
        )
        made.add_row(
            f"{model}, alone, {found['offered']:,.0f} rows/s",
            *_cells(single["open"], batched["open"]),
            "",
            f"{single['open']['p95_ms']}",
            f"{batched['open']['p95_ms']}",
        )
        if "kafka" in parts:
            found = parts["kafka"]
            single, batched = found["one_by_one"], found["batched"]
            made.add_row(
                f"{model}, Kafka (p95 at {found['offered']:,.0f}/s)",
                *_cells(single, batched),
                f"{found['cpu_ratio']}",
                f"{single['p95_ms']}",
                f"{batched['p95_ms']}",
            )
    return made


def _cells(single: dict[str, Any], batched: dict[str, Any]) -> Sequence[str]:
    return f"{single['rate']:,.0f}", f"{batched['rate']:,.0f}", f"{batched['rate'] / single['rate']:.2f}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--runs", type=int, default=3, help="of each; the best counts (default 3)")
    parser.add_argument("--seconds", type=float, default=5.0, help="of a steady rate (default 5)")
    parser.add_argument(
        "--share", type=float, default=1.0, help="of the rows of a throughput run (default 1)"
    )
    parser.add_argument("--no-kafka", action="store_false", dest="kafka", help="the worker alone")
    given = parser.parse_args()
    console = Console(stderr=True)
    try:
        with tempfile.TemporaryDirectory(prefix="edgeway-bench-") as folder:
            shown = uvloop.run(compare(given, Path(folder), console))
    except Failed as error:
        console.print(f"[red]no figures:[/red] {error}", highlight=False)
        return 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        console.print("stopped before the end: no figures")
        return 130
    if given.json is not None:
        given.json.write_text(json.dumps(shown, indent=2) + "\n", encoding="utf-8")
    Console(width=150).print(table(shown))
    return 0


if __name__ == "__main__":
    sys.exit(main())
