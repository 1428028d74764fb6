"""The models of a repository that a worker serves, beside those of apps."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from edgeway.aside import aside
from edgeway.errors import UsageError
from edgeway.models_watch import READ_S, ServedModel
from schemas.messages import Side
from streams.settings import Settings
from workers.backends import Backend
from workers.errors import RepositoryError, WorkerError
from workers.models.chosen import Source
from workers.models.pending import Pending
from workers.worker import Worker

log = logging.getLogger(__name__)

NEW_S = 30.0
"""Between looks for models that nobody serves yet."""
Every = Callable[[float, str, Callable[[], Awaitable[None]]], None]
"""`Host.every`."""


def cache_of(settings: Settings) -> Path:
    """The folder that models are pulled into."""
    if settings.models_cache is not None:
        return settings.models_cache
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "edgeway" / "models"


def source_of(settings: Settings) -> Source:
    """The repository that the settings name.

    Raises:
        UsageError: they name none, or one that nothing here reads.
    """
    if settings.models is None:
        raise UsageError("no model repository: name one with --models FOLDER or URL, or by EDGEWAY_MODELS")
    try:
        return Source(settings.models, cache_of(settings))
    except RepositoryError as error:
        raise UsageError(str(error)) from error


def models_of(settings: Settings) -> list[Pending]:
    """What the repository of the settings offers, on both sides; nothing where they name none.

    Raises:
        UsageError: the URL cannot be read.
    """
    return [] if settings.models is None else source_of(settings).offered()


def beside(models: Sequence[Pending], offered: frozenset[tuple[Side, str]]) -> frozenset[tuple[Side, str]]:
    """What apps and `models` offer together, `offered` by the apps.

    Raises:
        UsageError: two offer the same.
    """
    found: dict[tuple[Side, str], str] = dict.fromkeys(offered, "an app")
    for model in models:
        key = (model.card.side, model.card.capability)
        if key in found:
            raise UsageError(
                f"{key[0]}/{key[1]} is offered by {found[key]} and by model {model.name} of the repository: "
                "leave it out of one of them"
            )
        found[key] = f"model {model.name}"
    return frozenset(found)


def follow_models(
    settings: Settings, backends: Sequence[Backend], workers: Sequence[Worker], every: Every
) -> Callable[[], Awaitable[None]]:
    """Have `workers` serve those of `backends` (one each) that are still to be pulled, and follow their
    repository. Await what is given once the workers have started: they are ready then.
    """
    pairs = [(b, w) for b, w in zip(backends, workers, strict=True) if isinstance(b, Pending)]
    if not pairs:
        return _nothing
    source = source_of(settings)
    served = [ServedModel(source, pending, worker) for pending, worker in pairs]
    if settings.models_poll_s:
        for model in served:
            every(settings.models_poll_s, f"model {model.name}", model.look)
        news = _News(source, {model.name for model in served})
        every(max(NEW_S, settings.models_poll_s), "new models", news.look)

    async def start() -> None:
        try:
            await asyncio.gather(*(model.start() for model in served))
        except WorkerError as error:
            raise UsageError(str(error)) from error

    return start


class _News:
    """Tells of models that became active in a repository and that nobody here serves."""

    def __init__(self, source: Source, known: set[str]) -> None:
        self._source = source
        self._known = known
        self._reading: asyncio.Future[list[str]] | None = None

    async def look(self) -> None:
        reading = self._reading or aside(partial(self._source.unknown, set(self._known)), "new models")
        done, _ = await asyncio.wait({reading}, timeout=READ_S)
        self._reading = None if done else reading
        try:
            names = reading.result() if done else []
        except WorkerError:
            return  # the watch of each model says so
        for name in names:
            self._known.add(name)
            log.info("model %s became active; restart this worker where it is to serve it too", name)


async def _nothing() -> None:
    """No models to make ready."""
