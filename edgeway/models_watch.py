"""One served model: begins with the active version, and adopts another one while it serves."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from edgeway.aside import aside
from streams import metrics
from workers.backends import Backend
from workers.errors import Away, RepositoryError, WorkerError
from workers.models.chosen import Source
from workers.models.manifest import Active
from workers.models.pending import Pending
from workers.worker import Worker

log = logging.getLogger(__name__)

READ_S = 30.0
"""A repository that says nothing for so long counts as unreachable, until a later look."""
RETRY_S, LONGEST_RETRY_S = 30.0, 900.0
"""A refused version is tried again after this, then after twice as long each time: it may have been half
copied. One that failed its check is not: nothing about it changes."""


@dataclass(slots=True)
class Refused:
    """An activation that was refused: tried again at `due` (`time.monotonic()`), None: not before it
    changes.
    """

    active: Active
    due: float | None
    wait_s: float = RETRY_S

    def is_over(self, active: Active, now: float) -> bool:
        """Whether to try again."""
        return active != self.active or (self.due is not None and now >= self.due)


class ServedModel:
    """Keeps `worker` on the active version of the model of `pending`.

    `look` is called again and again. Whatever goes wrong in it is logged once and the version of before goes
    on: a repository that is away, a version that is damaged, one that does not answer as recorded.
    """

    def __init__(
        self,
        source: Source,
        pending: Pending,
        worker: Worker,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = pending.name
        self.version: str | None = None
        self._source = source
        self._pending = pending
        self._worker = worker
        self._clock = clock
        self._refused: Refused | None = None
        self._reading: asyncio.Future[Active | None] | None = None
        self._said: str | None = None
        self._unproved = False

    async def start(self) -> None:
        """Serve the active version, or else one that worked before. The worker has been started.

        Raises:
            WorkerError: there is none that can be served.
        """
        found = await aside(partial(self._source.first, self._pending), f"model {self.name}")
        self._switch(found.backend)
        self.version = found.version
        active = self._pending.active
        if found.refused is not None and active is not None and active.version != found.version:
            self._refuse(active, found.refused)
        elif found.away is not None and active is not None:
            self._unproved = True
            self._refused = Refused(active, self._clock() + RETRY_S)
        log.info("%s is served by %s %s", self._capability, self.name, found.version)

    async def look(self) -> None:
        """Look at the repository once; never raises for what it is like."""
        active = await self._active()
        if active is None:
            return
        if active.version == self.version and not self._unproved:
            self._refused = None
            return
        if self._refused is not None and not self._refused.is_over(active, self._clock()):
            return
        try:
            backend = await aside(partial(self._source.next, self.name, active), f"model {self.name}")
        except WorkerError as error:
            self._refuse(active, error)
            return
        except Exception as error:  # a model's loader may raise anything
            log.debug("while %s %s was made ready", self.name, active.version, exc_info=error)
            self._refuse(active, WorkerError(f"{type(error).__name__} while it was made ready"))
            return
        try:
            self._switch(backend)
        except WorkerError as error:
            backend.close()
            self._refuse(active, error)
            return
        before, self.version, self._refused, self._unproved = self.version, active.version, None, False
        if before == active.version:
            log.info("%s: %s %s is there now, and checked", self._capability, self.name, before)
            return
        metrics.MODEL_SWITCHES.labels("switched").inc()
        unchecked = ", activated without its check" if active.unchecked else ""
        log.info("%s: %s %s in place of %s%s", self._capability, self.name, active.version, before, unchecked)
        await aside(partial(self._source.taken, self.name, active.version, active.kept), "cache of models")

    def _switch(self, backend: Backend) -> None:
        """Raises WorkerError where the worker does not take it."""
        self._worker.switch(backend)
        self._pending.replaced(backend)

    async def _active(self) -> Active | None:
        # One read at a time: each one that hangs holds a thread.
        reading = self._reading or aside(partial(self._source.active, self.name), f"look at {self.name}")
        done, _ = await asyncio.wait({reading}, timeout=READ_S)
        self._reading = None if done else reading
        try:
            if not done:
                raise RepositoryError(f"the repository did not answer within {READ_S:.0f} s")
            found = reading.result()
        except RepositoryError as error:
            self._say(f"which version of {self.name} is active cannot be read, {self.version} stays: {error}")
            return None
        if found is None:
            self._say(f"no version of {self.name} is active any more; {self.version} stays until the next is")
        elif self._said is not None:
            self._said = None
            log.info("which version of %s is active can be read again", self.name)
        return found

    def _say(self, text: str) -> None:
        if self._said != text:
            self._said = text
            log.warning("%s", text)

    def _refuse(self, active: Active, error: WorkerError) -> None:
        known = self._refused
        told = not self._unproved or isinstance(error, Away)
        again = known is not None and known.active == active and told
        wait_s = min(LONGEST_RETRY_S, 2 * known.wait_s) if known is not None and again else RETRY_S
        due = self._clock() + wait_s if isinstance(error, RepositoryError | Away) else None
        self._refused = Refused(active, due, wait_s)
        if not again:
            metrics.MODEL_SWITCHES.labels("refused").inc()
            log.error("%s %s is refused, %s stays: %s", self.name, active.version, self.version, error)

    @property
    def _capability(self) -> str:
        card: Any = self._pending.card
        return f"{card.side}/{card.capability}"
