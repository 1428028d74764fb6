"""Following the rules file: what is read is judged as a whole, and adopted by every role or by none.

The file is read, not watched: a ConfigMap swaps a symlink above it, editors replace it, and network file
systems tell nobody.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from edgeway.aside import aside
from edgeway.errors import EdgewayError, UsageError
from edgeway.rules_of import load_rules, read_rules_again, require_merges
from schemas.errors import RulesError
from schemas.rules import Rules
from streams import metrics

log = logging.getLogger(__name__)

READ_S = 10.0
"""A file that cannot be read within this counts as unreadable, until a later look."""

PREPARE_S = 60.0
RETRY_S = 10.0
"""A refused content is judged again after this, in silence: a file that it names may have come since."""
UNREADABLE = "unreadable"
"""In place of the digest of a content."""

Adopt = Callable[[], None]
Prepare = Callable[[Rules], Adopt]
Reach = Callable[[Rules, Rules], Awaitable[None]]
"""Given the rules in force and the new ones, sees to what the new ones need of the cluster."""


class _Preparing(NamedTuple):
    """The preparation of the content with `digest`, which may hang."""

    digest: str
    work: asyncio.Future[tuple[Rules, list[Adopt]]]


@dataclass(slots=True)
class Contents:
    """What has become of the contents of the file, each known by its digest. Pure.

    A content is refused only when it was bad twice in a row: a file that is being written looks bad, and so
    does one that is missing for the moment between two links.
    """

    in_force: str | None = None
    refused: str | None = None
    doubted: str | None = None

    def wants(self, digest: str) -> bool:
        """Whether the content is to be judged."""
        if digest == self.in_force:
            self.refused = self.doubted = None
        elif digest == self.refused:
            self.doubted = None
        return digest not in (self.in_force, self.refused)

    def adopted(self, digest: str) -> None:
        """It was judged good and is what holds now."""
        self.in_force, self.refused, self.doubted = digest, None, None

    def failed(self, digest: str) -> bool:
        """It was judged bad; whether it is refused with that, or to be read once more."""
        if self.doubted != digest:
            self.doubted = digest
            return False
        self.refused, self.doubted = digest, None
        return True


@dataclass(slots=True)
class RulesWatch:
    """Adopts what the rules file says whenever it changes.

    `rules` are those in force; `prepares` is asked when they change, off the loop, and what it gives is
    called on the loop, without a pause in between. `before` may put the adoption off by an EdgewayError
    (Kafka is away), `after` follows it.
    """

    path: Path
    rules: Rules
    prepares: Sequence[Prepare]
    before: Reach | None = None
    after: Reach | None = None
    on_adopt: Callable[[Rules], None] = lambda rules: None
    clock: Callable[[], float] = time.monotonic
    contents: Contents = field(default_factory=Contents)
    _reading: asyncio.Future[bytes] | None = None
    _preparing: _Preparing | None = None
    _said: str | None = None
    _judged: float = 0.0

    def __post_init__(self) -> None:
        show(self.rules)

    async def look(self) -> None:
        """Look at the file once. Never raises for what the file or the cluster is like."""
        # One read at a time: each one that hangs holds a thread.
        reading = self._reading or aside(partial(read_rules_again, self.path), "rules read")
        done, _ = await asyncio.wait({reading}, timeout=READ_S)
        self._reading = None if done else reading
        if not done:
            self._judge_bad(UNREADABLE, f"it could not be read within {READ_S:.0f} s")
            return
        try:
            raw = reading.result()
        except UsageError as error:
            self._judge_bad(UNREADABLE, str(error))
            return
        digest = hashlib.sha256(raw).hexdigest()
        now = self.clock()
        again = digest == self.contents.refused and now - self._judged >= RETRY_S
        if self.contents.wants(digest) or again:
            self._judged = now
            await self._judge(raw, digest)
        metrics.RULES_REFUSED.set(self.contents.refused is not None)

    async def _judge(self, raw: bytes, digest: str) -> None:
        old = self.rules
        try:
            new, adopts = await self._in_time(raw, digest)
        except TimeoutError:
            self._judge_bad(digest, f"they could not be prepared within {PREPARE_S:.0f} s")
            return
        except (RulesError, EdgewayError) as error:
            self._judge_bad(digest, str(error))
            return
        except Exception as error:  # an edit names modules of strangers, which may raise anything
            log.debug("while the rules were prepared", exc_info=error)
            self._judge_bad(digest, f"{type(error).__name__} while they were prepared")
            return
        if new == old:
            self.contents.adopted(digest)
            return
        if self.before is not None and not await self._reached(self.before, old, new, digest):
            return
        for adopt in adopts:
            adopt()
        self.rules = new
        self.on_adopt(new)
        self.contents.adopted(digest)
        show(new)
        metrics.RULES_RELOADS.labels("adopted").inc()
        log.info("%s: rules %s are in force, in place of %s", self.path, new.version, old.version)
        if self.after is not None:
            await self._reached(self.after, old, new, digest)

    async def _in_time(self, raw: bytes, digest: str) -> tuple[Rules, list[Adopt]]:
        """What `_prepared` gives. A content whose preparation hangs is not prepared beside itself: each such
        thread would stay, and the next look would start one more.

        Raises:
            TimeoutError: it took longer than PREPARE_S.
        """
        going = self._preparing
        if going is None or going.digest != digest:
            going = _Preparing(digest, aside(partial(self._prepared, raw), "rules prepare"))
        done, _ = await asyncio.wait({going.work}, timeout=PREPARE_S if going is not self._preparing else 0)
        self._preparing = None if done else going
        if not done:
            raise TimeoutError
        return going.work.result()

    def _prepared(self, raw: bytes) -> tuple[Rules, list[Adopt]]:
        new = load_rules(raw, self.path)
        if new == self.rules:
            return new, []
        require_merges(new, raw)
        return new, [prepare(new) for prepare in self.prepares]

    async def _reached(self, reach: Reach, old: Rules, new: Rules, digest: str) -> bool:
        try:
            await reach(old, new)
        except EdgewayError as error:
            if self._said != digest:
                self._said = digest
                log.error("the topics of rules %s could not be seen to: %s", new.version, error)
            return False
        return True

    def _judge_bad(self, digest: str, why: str) -> None:
        if self.contents.wants(digest) and self.contents.failed(digest):
            metrics.RULES_RELOADS.labels("refused").inc()
            log.error("%s is refused and rules %s stay in force: %s", self.path, self.rules.version, why)
        metrics.RULES_REFUSED.set(self.contents.refused is not None)


def show(rules: Rules) -> None:
    """The version in force, as a metric."""
    metrics.RULES_INFO.clear()
    metrics.RULES_INFO.labels(rules.version).set(1)
