"""A progress bar on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


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
    if not shown or sys.stderr is None or not sys.stderr.isatty():
        yield Bar(None, None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    # Were standard output redirected too, results piped to a file would land on the terminal.
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as progress:
        yield Bar(progress, progress.add_task(what, total=total))
