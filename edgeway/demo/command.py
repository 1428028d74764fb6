"""`edgeway demo`: starts everything, sends real questions, shows who answered them and why."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from edgeway.demo import material
from edgeway.demo.figures import figures, is_good
from edgeway.demo.traffic import Traffic, drive
from edgeway.errors import EdgewayError, Exit, UsageError
from edgeway.explain import explain
from edgeway.roles.process import Process
from edgeway.roles.serving import built
from edgeway.roles.up import add_all, embedded_kafka, served
from edgeway.rules_of import rules_of
from edgeway.signals import run as run_until_told
from edgeway.topics_admin import apply_topics
from schemas.messages import Request, Result
from schemas.topics import topics_for
from streams.settings import Settings

REQUESTS = 500
console = Console(stderr=True)
log = logging.getLogger(__name__)


def run(requests: int | None = None, json_path: str | None = None) -> int:
    """Run the demonstration; 0 where every request was answered well, once.

    Raises:
        EdgewayError: what keeps it from starting.
    """
    count = REQUESTS if requests is None else requests
    if count < 1:
        raise UsageError(f"--requests {count}: send at least 1")
    if json_path is not None:
        _require_writable(Path(json_path))
    return run_until_told(_demonstrate(count, json_path), Exit.INTERRUPTED)


async def _demonstrate(count: int, json_path: str | None) -> int:
    asked = material.questions(count)
    requests = [*(question.request() for question in asked), *material.examples()]
    console.print(
        "Starting Apache Kafka (embedded; the first start fetches its jars), router, workers, aggregator ..."
    )
    traffic = await _send_all(requests)
    shown = figures(asked, traffic, await asyncio.to_thread(material.one_sided, asked))
    _show(shown)
    if json_path is not None:
        await asyncio.to_thread(_write, json_path, shown)
    _explain(traffic)
    _go_on()
    return Exit.OK if is_good(shown) else Exit.UNANSWERED


def _require_writable(path: Path) -> None:
    """Found out before minutes are spent. What is there stays as it is.

    Raises:
        UsageError: the file cannot be written.
    """
    new = not path.exists()
    try:
        with path.open("ab"):
            pass
        if new:
            path.unlink()
    except OSError as exc:
        raise UsageError(f"--json {path}: cannot be written: {exc.strerror or exc}") from exc


def _write(path: str, shown: dict[str, Any]) -> None:
    try:
        Path(path).write_text(json.dumps(shown, indent=2) + "\n", encoding="utf-8")
    except OSError as exc:
        raise EdgewayError(f"--json {path}: the figures were not written: {exc.strerror or exc}") from exc


async def _send_all(requests: list[Request]) -> Traffic:
    settings = Settings(rules=material.rules_file())
    async with contextlib.AsyncExitStack() as stack:
        settings = await embedded_kafka(stack, settings)
        rules = rules_of(settings)
        await apply_topics(settings, topics_for(rules, settings.partitions))
        backends = served(settings, rules)
        process = await built("demo", settings, rules, lambda process: add_all(process, backends))
        try:
            await process.start()
            with _progress(len(requests)) as answered:
                return await _while_alive(process, drive(settings, requests, answered))
        finally:
            await process.stop()


async def _while_alive(process: Process, work: Any) -> Traffic:
    """The result of `work`, unless the roles end first."""
    driving = asyncio.ensure_future(work)
    living = asyncio.ensure_future(process.host.wait(asyncio.Event()))
    ends: set[asyncio.Future[Any]] = {driving, living}
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        alive = driving.done()
    finally:
        # Also when interrupted: a task that nobody awaits complains when it is forgotten.
        for task in ends:
            task.cancel()
        await asyncio.gather(*ends, return_exceptions=True)
    if not alive:
        living.result()
        raise EdgewayError("the roles ended before the demonstration did")
    traffic: Traffic = driving.result()
    return traffic


@contextlib.contextmanager
def _progress(total: int) -> Iterator[Any]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("answered", total=total)

        def answered(_result: Result) -> None:
            progress.advance(task)

        yield answered


def _show(shown: dict[str, Any]) -> None:
    questions, answered = shown["requests"], max(1, shown["answered"])
    table = Table(
        title=f"{questions} questions of Banking77 and {shown['examples']} examples", show_header=False
    )
    rows = [
        ("answered", f"{shown['answered']} of {questions} ({shown['ok']} ok)"),
        ("examples ok", f"{shown['examples_ok']} of {shown['examples']}"),
        ("lost", str(shown["lost"])),
        ("duplicated", str(shown["duplicated"])),
        ("partial, errors", f"{shown['partial']}, {shown['errors']}"),
        ("answered at the edge", f"{shown['local']} ({shown['local'] / answered:.1%})"),
        ("answered in the cloud", f"{shown['cloud']} ({shown['cloud'] / answered:.1%})"),
        ("accuracy all local", f"{shown['accuracy_local']:.1%}"),
        ("accuracy hybrid", f"{shown['accuracy_hybrid']:.1%}"),
        ("accuracy all cloud", f"{shown['accuracy_cloud']:.1%}"),
        ("p50, p95, p99", f"{shown['p50_ms']}, {shown['p95_ms']}, {shown['p99_ms']} ms"),
        ("throughput", f"{shown['throughput_rps']} requests/s, all roles in one process"),
    ]
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _explain(traffic: Traffic) -> None:
    console.print("\nThree decisions in plain words:")
    for result in _telling(traffic):
        console.print(f"\n[bold]{result.id}[/bold] ({result.task}, {result.status})")
        for line in explain(result):
            console.print(f"  {line}", markup=False, highlight=False)


def _telling(traffic: Traffic) -> list[Result]:
    """One question that the edge answered alone, one that went on to the cloud, and the private one."""
    results = traffic.first
    asked = [result for name, result in results.items() if name.startswith("question-")]
    local = next((result for result in asked if result.sides.get("intent") == "local"), None)
    cloud = next((result for result in asked if result.sides.get("intent") == "cloud"), None)
    return [result for result in (local, cloud, results.get("private-1")) if result is not None]


def _go_on() -> None:
    console.print(
        "\nGo on: start it and leave it running, then send something yourself from a second terminal:\n"
        "  .venv/bin/edgeway up --rules examples/demo/rules.json\n"
        "  .venv/bin/edgeway send --task intent --text 'where is my card' --wait\n"
        "  .venv/bin/edgeway send --query 生成财报分析 --text '营业收入12.6亿元，上年同期10.5亿元' --wait",
        markup=False,
        highlight=False,
        soft_wrap=True,  # a line broken behind --text is a command that fails when pasted
    )
