"""A million subtasks through one worker process: memory over time, throughput, and how far that is from bare.

`python benchmarks/worker_million.py --json FILE`. The Crayfish model in `edgeway worker` on an embedded
Kafka, fed 30,000 subtasks ahead at most. Beside it, in the same run: the bare loop of benchmarks/floor.py,
which reads, infers and writes the same bytes without decoding them, and the model in memory. Every subtask
must be answered once and without an error; else the exit code is 1.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = str(Path(__file__).resolve().parents[1])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

import msgspec  # noqa: E402
import numpy as np  # noqa: E402
import onnxruntime as ort  # noqa: E402
import uvloop  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.progress import Progress  # noqa: E402

from benchmarks import floor, worker_kafka  # noqa: E402
from benchmarks.processes import Failed, Role  # noqa: E402
from benchmarks.shapes import Template, Templates  # noqa: E402
from benchmarks.worker_app import CRAYFISH  # noqa: E402
from schemas import topics  # noqa: E402
from schemas.topics import TopicSpec  # noqa: E402

POINTS = 10
WARM_UP = 20_000
BATCH = 32


def bare_model(seconds: float = 2.0) -> float:
    """Rows a second of the model alone, in batches of BATCH on one thread."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = ort.InferenceSession(str(CRAYFISH), options, providers=["CPUExecutionProvider"])
    images = np.random.default_rng(7).random((BATCH, 1, 784), dtype=np.float32)
    began, rows = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        session.run(None, {"input": images})
        rows += BATCH
    return rows / (time.perf_counter() - began)


def inputs() -> list[dict[str, Any]]:
    random = np.random.default_rng(7)
    return [{"x": random.random(784, dtype=np.float32).astype("<f4").tobytes()} for _ in range(64)]


async def measured(given: argparse.Namespace, folder: Path, console: Console) -> dict[str, Any]:
    """All figures.

    Raises:
        Failed: a process ended, or an answer is missing, doubled or an error.
    """
    subtasks = worker_kafka.Subtasks(inputs())
    alone = bare_model()
    async with worker_kafka.bench(folder, [TopicSpec(name, floor.PARTITIONS) for name in floor.TOPICS]) as at:
        role = at.worker("worker")
        await role.start()
        try:
            await role.ready()
            await worker_kafka.stream(at, role, subtasks, "warm-ups", WARM_UP, _silent)
            watch, used = Memory(role, given.subtasks), role.cpu_s()
            with Progress(console=console, transient=True) as progress:
                shown = progress.add_task("subtasks", total=given.subtasks)

                def moved(done: int) -> None:
                    progress.update(shown, completed=done)
                    watch.look(done)

                took = await worker_kafka.stream(at, role, subtasks, "millions", given.subtasks, moved)
            cpu_s = role.cpu_s() - used
        finally:
            await role.stop()
        lost, again, errors = await worker_kafka.verified(at, "millions", given.subtasks)
        rate, floor_cpu = await floor_rate(at, subtasks, given.floor)
    ours = {
        "rate": round(given.subtasks / took, 1),
        "cpu_s_per_1000": round(cpu_s / given.subtasks * 1000, 4),
    }
    return {
        "subtasks": given.subtasks,
        "seconds": round(took, 1),
        **ours,
        "lost": lost,
        "answered_again": again,
        "errors": errors,
        "rss_mb": watch.points,
        "floor_rate": round(rate, 1),
        "floor_cpu_s_per_1000": round(floor_cpu, 4),
        "bare_model_rate": round(alone, 1),
        "ratio_to_floor": round(given.subtasks / took / rate, 3),
        "cpu_ratio_to_floor": round(cpu_s / given.subtasks * 1000 / floor_cpu, 2),
        "ratio_to_bare_model": round(given.subtasks / took / alone, 4),
    }


class Memory:
    """The memory of a process at POINTS equal steps of the way: (answered, MiB)."""

    def __init__(self, role: Role, count: int) -> None:
        self._role, self._step = role, max(1, count // POINTS)
        self.points: list[tuple[int, float]] = [(0, round(role.rss_mb(), 1))]

    def look(self, done: int) -> None:
        if done >= self._step * len(self.points):
            self.points.append((done, round(self._role.rss_mb(), 1)))


async def floor_rate(
    at: worker_kafka.Bench, subtasks: worker_kafka.Subtasks, count: int
) -> tuple[float, float]:
    """Rows a second of the bare loop on the same records, and its CPU seconds for 1,000."""
    (record,) = subtasks.make("template", 0, 1)
    image = bytes(inputs()[0]["x"])
    partial = (await at.load.read(topics.JOINS, dict.fromkeys(at.load.places(topics.JOINS), 0)))[0]
    same = Template(record.value, record.headers)
    made = Templates(
        plan=same,
        subtask=same,
        partial=Template(partial.value, list(partial.headers)),
        result=same,
        request_pixels=0,
        subtask_pixels=record.value.index(image),
    )
    written = at.folder / "templates"
    written.write_bytes(msgspec.msgpack.encode(made))
    role = Role(
        "floor",
        ["-m", "benchmarks.floor", "worker", "--kafka", at.kafka, "--templates", str(written)],
        at.folder,
    )
    await role.start()
    try:
        await role.ready()
        where = {"work": floor.WORK, "results": floor.JOINS}
        await worker_kafka.stream(at, role, subtasks, "warm-ups", WARM_UP, _silent, **where)
        used = role.cpu_s()
        took = await worker_kafka.stream(at, role, subtasks, "for-bare", count, _silent, **where)
        return count / took, (role.cpu_s() - used) / count * 1000
    finally:
        await role.stop()


def _silent(_done: int) -> None: ...


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--subtasks", type=int, default=1_000_000, help="how many (default 1000000)")
    parser.add_argument("--floor", type=int, default=200_000, help="through the bare loop (default 200000)")
    given = parser.parse_args()
    console = Console(stderr=True)
    try:
        with tempfile.TemporaryDirectory(prefix="edgeway-bench-") as folder:
            shown = uvloop.run(measured(given, Path(folder), console))
    except Failed as error:
        console.print(f"[red]no figures:[/red] {error}", highlight=False)
        return 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        console.print("stopped before the end: no figures")
        return 130
    text = json.dumps(shown, indent=2)
    if given.json is not None:
        given.json.write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(text + "\n")
    return 1 if shown["lost"] or shown["answered_again"] or shown["errors"] else 0


if __name__ == "__main__":
    sys.exit(main())
