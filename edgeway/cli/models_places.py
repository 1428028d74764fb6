"""What the commands on model repositories share: the repository, NAME@VERSION, their errors, their bar."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from edgeway.cli.arguments import read_settings
from edgeway.errors import EdgewayError, UsageError

if TYPE_CHECKING:
    from workers.models.chosen import Source
    from workers.models.manifest import Active

    Advance = Callable[[int], None]


def opened(args: argparse.Namespace) -> Source:
    """The repository of `--models` or `EDGEWAY_MODELS`, and the cache.

    Raises:
        UsageError: none is named, or nothing here reads it.
    """
    from edgeway import logs
    from edgeway.models_serving import source_of

    settings = read_settings(args)
    # What a model's backend is up to is for the logs of workers.
    level = "warning" if settings.log_level == "info" else settings.log_level
    logs.configure(dataclasses.replace(settings, log_level=level), quiet_client=True)
    return source_of(settings)


@contextmanager
def told() -> Iterator[None]:
    """Errors of repositories and models as those of commands: exit code 1 where a version is not sound, else
    2.
    """
    from workers.errors import BadInput, CheckFailed, Damaged, WorkerError

    try:
        yield
    except (CheckFailed, Damaged) as error:
        raise EdgewayError(str(error)) from error
    except (WorkerError, BadInput) as error:
        raise UsageError(str(error)) from error


def activated(source: Source, name: str, version: str, *, unchecked: bool = False) -> Active:
    """Have a version served.

    Raises:
        UsageError: another active model is of the same capability: no worker could start with both.
    """
    from workers.errors import RepositoryError

    def capability(model: str, of: str) -> tuple[object, object]:
        card = source.repository.card(model, of)
        return card.get("side"), card.get("capability")

    wanted = capability(name, version)
    for other in source.repository.names():
        try:
            active = None if other == name else source.repository.active(other)
            twin = active is not None and capability(other, active.version) == wanted
        except RepositoryError:
            continue  # what cannot be read is not served
        if twin:
            raise UsageError(
                f"{wanted[0]}/{wanted[1]} is served by model {other} already: add this one as a version of "
                f"it (--name {other}), or remove {source.repository.store.url}/{other}/active.json first"
            )
    return source.repository.activate(name, version, unchecked=unchecked)


def parted(text: str) -> tuple[str, str | None]:
    """`NAME@VERSION` as its parts; without `@` the version is None."""
    name, mark, version = text.partition("@")
    return name, version if mark else None


def version_of(source: Source, name: str, version: str | None) -> str:
    """`version`, or else the active one, or else the newest.

    Raises:
        UsageError: there is none.
    """
    if version is not None:
        return version
    active = source.repository.active(name)
    if active is not None:
        return active.version
    return newest(source, name)


def newest(source: Source, name: str) -> str:
    """The highest version.

    Raises:
        UsageError: there is none.
    """
    versions = source.repository.versions(name)
    if not versions:
        known = ", ".join(source.repository.names()) or "none"
        raise UsageError(f"there is no model {name} in {source.repository.store.url}; there are {known}")
    return versions[-1]


@contextmanager
def bytes_bar(what: str, total: int) -> Iterator[Advance]:
    """A bar of bytes on standard error where that is a terminal; what it gives is told of each piece."""
    if not sys.stderr.isatty():
        yield lambda _count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as progress:
        task = progress.add_task(what, total=total)
        yield lambda count: progress.advance(task, count)
