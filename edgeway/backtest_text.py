"""The report of a backtest as tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from rich.console import Console
from rich.table import Table

from edgeway.backtest import NO_TASK
from edgeway.backtest_report import Pair, Report, Row
from edgeway.explain_text import ORIGINS
from edgeway.wrapping import printable

MOVES = {
    "stays_local": "stay at the edge",
    "stays_cloud": "stay in the cloud",
    "local_to_cloud": "edge to cloud",
    "cloud_to_local": "cloud to edge",
    "newly_refused": "refused now",
    "newly_answered": "answered now",
    "still_refused": "refused as before",
    "added": "new steps",
    "dropped": "steps that are gone",
}
EXAMPLES = {**MOVES, "may_leave_now": "may leave now", "must_stay_now": "must stay now"}


def show(report: Report, stream: IO[str], width: int) -> None:
    """Write `report` for people."""
    console = Console(file=stream, width=width, highlight=False)
    for line in _preface(report):
        console.print(line, markup=False)
    for name, row in _rows(report):
        console.print()
        console.print(_table(name, row, report))
    console.print()
    if report.targets:
        console.print(_targets(report))
        console.print()
    if report.judged:
        console.print(_judged(report))
        console.print()
    for line in _examples(report.total):
        console.print(line, markup=False)


def _preface(report: Report) -> Iterator[str]:
    old = f"{report.old.name} ({report.old.rules})" if report.old.rules else "what was recorded"
    yield f"old: {old}; new: {report.new.name} ({report.new.rules})"
    have = report.records
    yield (
        f"{have.read} records, {have.compared} compared, {have.bad} bad lines, "
        f"{have.without_result} without a result, {have.with_feedback} with feedback, {have.cached} cached"
    )
    yield f"capabilities {ORIGINS[report.registry]}"  # type: ignore[index]


def _rows(report: Report) -> Iterator[tuple[str, Row]]:
    if len(report.tasks) > 1:
        for name, row in report.tasks.items():
            yield ("of no known task" if name == NO_TASK else f"task {name}"), row
        yield "all", report.total
    else:
        yield f"task {next(iter(report.tasks))}", report.total


def _table(name: str, row: Row, report: Report) -> Table:
    title = f"{name}: {row.requests} requests, {row.steps} steps, {row.moved:.1%} moved"
    table = Table(title=title, title_justify="left", show_edge=False, pad_edge=False)
    table.add_column("", no_wrap=True)
    for head in ("old", "new", "change"):
        table.add_column(head, justify="right")
    for key, text in MOVES.items():
        if row.moves.get(key):
            count = row.moves[key]
            table.add_row(f"steps: {text}", "", str(count), f"{count / row.steps:.1%}")
    if row.unsure:
        table.add_row("  of these guessed (no confidence recorded)", "", str(row.unsure), "")
    _pair(table, "refused", row.refused, "{:.0f}")
    _pair(table, "cost, expected", row.cost, "{:.6g}")
    _pair(table, "cost, at most", row.bound, "{:.6g}")
    if row.latency_ms.requests:
        _pair(table, f"p50 ms ({row.latency_ms.requests} requests)", row.latency_ms.p50, "{:.1f}")
        _pair(table, "p95 ms", row.latency_ms.p95, "{:.1f}")
    else:
        table.add_row("latency", "unknown", "unknown", "")
    _quality(table, row)
    if row.may_leave_now or row.must_stay_now:
        table.add_row("may leave the edge now", "", str(row.may_leave_now), "")
        table.add_row("must stay at the edge now", "", str(row.must_stay_now), "")
    if row.over_budget.old or row.over_budget.new:
        _pair(table, "over a day's budget", row.over_budget, "{:.0f}")
    if row is report.total and (report.old.most_spent_a_day or report.new.most_spent_a_day):
        spent = Pair(report.old.most_spent_a_day, report.new.most_spent_a_day)
        _pair(table, "spent on the dearest day", spent, "{:.6g}")
    return table


def _quality(table: Table, row: Row) -> None:
    have = row.quality
    if have.requests:
        _pair(table, f"share right ({have.requests} requests)", have.share, "{:.4f}")
    else:
        table.add_row("share right", "unknown", "unknown", "")
    if have.estimated:
        table.add_row(f"  estimated, by {have.least_samples} answers or more", "", str(have.estimated), "")
    if have.unknown:
        table.add_row("  unknown, and left out of it", "", str(have.unknown), "")
    if have.unknown_moved:
        table.add_row("    of these answered by another side", "", str(have.unknown_moved), "")


def _pair(table: Table, name: str, pair: Pair, form: str) -> None:
    old, new = ("-" if value is None else form.format(value) for value in (pair.old, pair.new))
    change = ""
    if pair.old is not None and pair.new is not None and pair.old != pair.new:
        change = f"{pair.new - pair.old:+.4g}"
    table.add_row(name, old, new, change)


def _targets(report: Report) -> Table:
    table = Table(title="recorded of each target", title_justify="left", show_edge=False, pad_edge=False)
    table.add_column("target", no_wrap=True)
    for head in ("answers", "p50 ms", "p95 ms", "mean cost"):
        table.add_column(head, justify="right")
    for row in report.targets:
        cost = "unknown" if row.mean_cost is None else f"{row.mean_cost:.6g}"
        table.add_row(row.target, str(row.answers), f"{row.p50_ms:.1f}", f"{row.p95_ms:.1f}", cost)
    return table


def _judged(report: Report) -> Table:
    table = Table(title="recorded feedback", title_justify="left", show_edge=False, pad_edge=False)
    table.add_column("answered by", no_wrap=True)
    for head in ("answers", "share right"):
        table.add_column(head, justify="right")
    for row in report.judged:
        if row.confidence is None:
            sides = ", ".join(f"{step} {side}" for step, side in row.sides.items())
            table.add_row(f"{row.task}: {sides}", str(row.samples), f"{row.share:.4f}")
    return table


def _examples(row: Row) -> Iterator[str]:
    for name, found in row.examples.items():
        yield f"{EXAMPLES.get(name, name)}, for example: {printable(', '.join(found))}"
