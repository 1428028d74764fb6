"""Which version of a model is served, and making it ready: the active one, or else one that worked before."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from workers.backends import Backend
from workers.backends.registry import build
from workers.errors import Away, LoadError, RepositoryError, WorkerError
from workers.models.cards import read_card
from workers.models.manifest import CARD, Active
from workers.models.offering import REMOTE, card_of, options_of
from workers.models.opening import open_store
from workers.models.pending import Pending
from workers.models.pull import Cache
from workers.models.ready import made_ready, started
from workers.models.repository import Repository

log = logging.getLogger(__name__)

TELL_S = 5.0


class Ready(NamedTuple):
    """A backend that is loaded and checked, of `version`; `refused` says why the active one could not be
    pulled, or is not served. `away`: the service that it asks is, so that it is not checked yet.
    """

    version: str
    backend: Backend
    refused: WorkerError | None = None
    away: Away | None = None


class Progress:
    """Tells in the log how far a pull is that takes long."""

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._clock = clock
        self._bytes = 0
        self._due = clock() + TELL_S

    def __call__(self, count: int) -> None:
        self._bytes += count
        now = self._clock()
        if now >= self._due:
            self._due = now + TELL_S
            log.info("pulling %s: %.0f MB are here", self._what, self._bytes / 1e6)


class Source:
    """A repository and the cache that its models are pulled into."""

    def __init__(self, url: str, cache: Path) -> None:
        """Raises RepositoryError where nothing here reads such URLs."""
        self.repository = Repository(open_store(url))
        self.cache = Cache(cache, self.repository.store.url)

    def offered(self) -> list[Pending]:
        """What the repository's active versions offer; what was pulled before where it does not answer.

        So it is where it holds nothing at all, as a folder does that is not mounted. A model that cannot be
        read is told in the log and left out.
        """
        names: list[str] = []
        away = False
        try:
            names = self.repository.names()
            told = f"{self.repository.store.url} holds no models"
        except RepositoryError as error:
            told = str(error)
        if not names:
            names, away = self.cache.names(), True
            log.warning("%s%s", told, "; what was pulled before is served" if names else "")
        found = []
        for name in names:
            try:
                pending = self._offered(name) if not away else self._pulled(name, None)
            except WorkerError as error:
                log.error("model %s is not served: %s", name, error)
                continue
            if pending is not None:
                found.append(pending)
        return found

    def active(self, name: str) -> Active | None:
        """Which version of a model is active.

        Raises:
            RepositoryError: it cannot be read.
        """
        return self.repository.active(name)

    def unknown(self, known: set[str]) -> list[str]:
        """Active models beside those of `known`.

        Raises:
            RepositoryError: the repository does not answer.
        """
        others = [name for name in self.repository.names() if name not in known]
        return [name for name in others if self.repository.active(name) is not None]

    def first(self, pending: Pending) -> Ready:
        """The backend to begin with: of the active version, or of one before that can be made ready. Blocks.

        A version whose service elsewhere is away is served all the same: its rows are refused until it is
        back, and nothing else here waits for that.

        Raises:
            WorkerError: none can; the text is about the active one.
        """
        refused: WorkerError | None = None
        active, name = pending.active, pending.name
        unsound: set[str] = set()
        for version, here in self._candidates(name, active):
            if version in unsound:
                continue
            checked = active is None or active.version != version or not active.unchecked
            try:
                folder = here or self._pull(name, version)
                try:
                    backend, away = started(folder, checked=checked)
                except WorkerError:
                    unsound.add(version)
                    raise
            except WorkerError as error:
                log.error("%s %s cannot be served: %s", name, version, error)
                refused = refused or error
                continue
            if refused is not None:
                log.warning("%s: what is served is version %s, as it was pulled before", name, version)
            self.taken(name, version)
            if away is not None:
                log.warning("%s %s is served unchecked, as what it asks is away: %s", name, version, away)
            return Ready(version, backend, refused, away)
        raise refused or LoadError(f"{name}: no version of it is active, and none was pulled before")

    def next(self, name: str, active: Active) -> Backend:
        """The backend of another active version. Blocks.

        Raises:
            WorkerError: it cannot be pulled, or is not what was added.
        """
        return made_ready(self._pull(name, active.version), checked=not active.unchecked)

    def taken(self, name: str, version: str, using: Iterable[str] = ()) -> None:
        """Note that `version` runs; remove what is older than the versions kept, none of `using`."""
        try:
            self.cache.remember(name, version)
            self.cache.prune(name, {version, *using})
        except RepositoryError as error:
            log.warning("the cache of models is not in order: %s", error)

    def _pull(self, name: str, version: str) -> Path:
        return self.cache.pull(self.repository, name, version, Progress(f"{name} {version}"))

    def _offered(self, name: str) -> Pending | None:
        active: Active | None = None
        try:
            active = self.repository.active(name)
            if active is None:
                return None
            return self._of_repository(name, active)
        except WorkerError as error:
            found = self._pulled(name, active)
            if found is None:
                raise
            log.warning("%s; what was pulled before is served", error)
            return found

    def _pulled(self, name: str, active: Active | None) -> Pending | None:
        folder = next((place for _, place in self._cached(name)), None)
        return None if folder is None else _pending(read_card(folder), str(folder / CARD), name, active)

    def _of_repository(self, name: str, active: Active) -> Pending:
        refused: WorkerError | None = None
        for version in (active.version, *active.previous):
            try:
                document = self.repository.card(name, version)
                return _pending(document, f"{name} {version}", name, active)
            except WorkerError as error:
                refused = refused or error
        assert refused is not None
        raise refused

    def _candidates(self, name: str, active: Active | None) -> Iterator[tuple[str, Path | None]]:
        """Versions to try in their order, each with its folder where it was pulled before."""
        if active is not None:
            yield active.version, None
            # One that cannot be pulled may lie here all the same, whole.
            yield from (each for each in self._cached(name) if each[0] == active.version)
            yield from ((version, None) for version in active.previous)
        yield from self._cached(name)

    def _cached(self, name: str) -> Iterator[tuple[str, Path]]:
        remembered = self.cache.remembered(name)
        versions = self.cache.versions(name)
        for version in sorted(versions, key=lambda v: v != remembered):
            try:
                yield version, self.cache.there(name, version)
            except RepositoryError as error:
                log.warning("%s", error)


def _pending(document: dict[str, object], where: str, name: str, active: Active | None) -> Pending:
    card = card_of(document, where)
    threads = 1
    if card.model_type in REMOTE:
        threads = int(getattr(build(card, options_of(document, Path())), "threads", 1))
    return Pending(card, name, active, threads)
