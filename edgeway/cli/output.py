"""What commands write: data to standard output, everything about it to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgeway.request_lines import BadLine


def out(text: str) -> None:
    """A line of data."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def out_json(value: Any) -> None:
    """A line of JSON."""
    out(json.dumps(value, ensure_ascii=False, default=str))


def say(text: str) -> None:
    """A line for the person at the terminal."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def say_bad(line: BadLine) -> None:
    """What is wrong with one line of input."""
    say(f"line {line.number}: {line.reason}; it was left out, the others go on")


class Bar:
    """A progress bar on a terminal; nothing elsewhere."""

    def __init__(self, progress: Any, task: Any) -> None:
        self._progress = progress
        self._task = task

    def advance(self, count: int = 1) -> None:
        """`count` more are done."""
        if self._progress is not None:
            self._progress.advance(self._task, count)


@contextmanager
def bar(what: str, total: int | None = None, shown: bool = True) -> Iterator[Bar]:
    """A bar on standard error while the block runs; without `total` it only shows that something goes on."""
    if not shown or not sys.stderr.isatty():
        yield Bar(None, None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    # Were standard output redirected too, results piped to a file would land on the terminal.
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as progress:
        yield Bar(progress, progress.add_task(what, total=total))
