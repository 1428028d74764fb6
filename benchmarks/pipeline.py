"""What Edgeway costs: the Crayfish model through router, worker and aggregator, beside three bare loops.

`python benchmarks/pipeline.py --json FILE`. Both run as separate processes on one embedded Kafka, in turns,
on records of the same sizes. Every request must be answered once; else the exit code is 1. Throughput counts
from the first request appended to the last answer appended, latency from append to append at a steady rate,
both by the broker's clock. Figures are medians over the runs. A quiet machine is worth more than many runs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import statistics
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = str(Path(__file__).resolve().parents[1])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

import uvloop  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: E402
from rich.table import Table  # noqa: E402

from benchmarks import floor  # noqa: E402
from benchmarks.load import Load  # noqa: E402
from benchmarks.measure import Measured, Plan, measure  # noqa: E402
from benchmarks.processes import Failed  # noqa: E402
from benchmarks.systems import RULES, System, bare, edgeway, templates  # noqa: E402
from edgeway.embedded import EmbeddedKafka, EmbeddedKafkaError  # noqa: E402
from edgeway.rules_of import rules_of  # noqa: E402
from edgeway.topics_admin import apply_topics  # noqa: E402
from schemas.topics import TopicSpec, topics_for  # noqa: E402
from streams.settings import Settings  # noqa: E402

FIGURES = ("throughput_rps", "cpu_s_per_1000", "paced_cpu_s_per_1000", "p50_ms", "p95_ms", "p99_ms")
DIGITS = {"throughput_rps": 0, "cpu_s_per_1000": 4, "paced_cpu_s_per_1000": 4}


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--runs", type=int, default=5, help="runs of each; the medians count (default 5)")
    parser.add_argument("--requests", type=int, default=20_000, help="of a throughput run (default 20000)")
    parser.add_argument(
        "--rate", type=float, default=200.0, help="requests a second for latency (default 200)"
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="at that rate (default 20)")
    parser.add_argument(
        "--profile", type=Path, metavar="FOLDER", help="cProfile of every role; falsifies figures"
    )
    given = parser.parse_args()
    if min(given.runs, given.requests, given.rate, given.seconds) <= 0:
        parser.error("--runs, --requests, --rate and --seconds must be above 0")
    return given


async def compare(given: argparse.Namespace, folder: Path, console: Console) -> dict[str, Any]:
    """All runs, in turns; the figures.

    Raises:
        Failed: see `measure`.
    """
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    plan = Plan(given.requests, given.rate, given.seconds)
    taken: dict[str, list[Measured]] = {"edgeway": [], "floor": []}
    if given.profile is not None:
        given.profile.mkdir(parents=True, exist_ok=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        shown = progress.add_task("starting Kafka", total=None)
        async with EmbeddedKafka() as kafka:
            settings = Settings(kafka=kafka.bootstrap, rules=RULES, partitions=floor.PARTITIONS)
            ours = topics_for(rules_of(settings), floor.PARTITIONS)
            await apply_topics(
                settings, [*ours, *(TopicSpec(name, floor.PARTITIONS) for name in floor.TOPICS)]
            )
            load = Load(kafka.bootstrap, floor.PARTITIONS)
            await load.start()
            try:
                written = folder / "templates"
                for run in range(1, given.runs + 1):
                    # Edgeway first: the floor writes records of the sizes that it finds in the log.
                    pair: list[System] = [edgeway(kafka.bootstrap), bare(kafka.bootstrap, written)]
                    for system in pair if run % 2 else reversed(pair):
                        progress.update(shown, description=f"run {run} of {given.runs}: {system.name}")
                        figures, warm = await measure(system, load, plan, run, folder, given.profile)
                        taken[system.name].append(figures)
                        if not written.exists():
                            written.write_bytes(await templates(load, warm))
            finally:
                await load.stop()
    return summary(taken, given)


def summary(taken: dict[str, list[Measured]], given: argparse.Namespace) -> dict[str, Any]:
    """What `--json` writes."""
    shown: dict[str, Any] = {}
    for system, prefix in (("edgeway", ""), ("floor", "floor_")):
        for name in FIGURES:
            middle = statistics.median(getattr(run, name) for run in taken[system])
            shown[prefix + name] = round(middle, DIGITS.get(name, 1))
    ratio = shown["throughput_rps"] / shown["floor_throughput_rps"]
    asked = {"requests": given.requests, "rate": given.rate, "seconds": given.seconds}
    every = {system: [asdict(run) for run in runs] for system, runs in taken.items()}
    return {"ratio_to_floor": round(ratio, 3), **shown, "runs": given.runs, **asked, "every_run": every}


def table(shown: dict[str, Any]) -> Table:
    """The figures for people."""
    made = Table(title=f"Crayfish model, three processes, medians of {shown['runs']} runs")
    for name in ("", "Edgeway", "floor", "Edgeway to floor"):
        made.add_column(name, justify="left" if not name else "right")
    lines = (
        ("throughput, requests/s", "throughput_rps", "ratio"),
        ("CPU s per 1,000, at full load", "cpu_s_per_1000", "ratio"),
        (f"CPU s per 1,000, at {shown['rate']:g}/s", "paced_cpu_s_per_1000", "ratio"),
        (f"p50 at {shown['rate']:g}/s, ms", "p50_ms", "difference"),
        (f"p95 at {shown['rate']:g}/s, ms", "p95_ms", "difference"),
        (f"p99 at {shown['rate']:g}/s, ms", "p99_ms", "difference"),
    )
    for text, name, how in lines:
        mine, bare_one = shown[name], shown[f"floor_{name}"]
        beside = f"{mine / bare_one:.2f} x" if how == "ratio" and bare_one else f"{mine - bare_one:+.1f}"
        made.add_row(text, f"{mine:,}", f"{bare_one:,}", beside)
    return made


def main() -> int:
    given = parsed()
    console = Console(stderr=not sys.stdout.isatty())
    try:
        with tempfile.TemporaryDirectory(prefix="edgeway-bench-") as folder:
            shown = uvloop.run(compare(given, Path(folder), console))
    except (Failed, EmbeddedKafkaError) as error:
        console.print(f"[red]no figures:[/red] {error}", highlight=False)
        return 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        console.print("stopped before the end: no figures")
        return 130
    if given.json is not None:
        given.json.write_text(json.dumps(shown, indent=2) + "\n", encoding="utf-8")
    Console().print(table(shown))
    return 0


if __name__ == "__main__":
    sys.exit(main())
