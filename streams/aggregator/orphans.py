"""Partials that arrived before their plan."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from schemas.messages import Partial


class Orphan(NamedTuple):
    """A partial in waiting; `since` is when it was taken in, `at` its append time."""

    partial: Partial
    offset: int
    at: int
    size: int
    since: int


class Orphans:
    """Orphans by request, the oldest first."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[Orphan]] = {}
        self._order: deque[tuple[str, Orphan]] = deque()
        self._count = 0
        self.size = 0

    def __len__(self) -> int:
        return self._count

    def add(self, key: str, orphan: Orphan) -> None:
        """Keep `orphan` for the request with the scoped id `key`."""
        self._waiting.setdefault(key, []).append(orphan)
        self._order.append((key, orphan))
        self._count += 1
        self.size += orphan.size

    def adopt(self, key: str) -> list[Orphan]:
        """Those of one request, which wait no longer."""
        found = self._waiting.pop(key, [])
        for orphan in found:
            self._count -= 1
            self.size -= orphan.size
        if not self._count:
            self._order.clear()
        return found

    def oldest(self, before: float) -> tuple[str, Orphan] | None:
        """Take out the oldest one taken in up to `before`; None where there is none."""
        while self._order:
            key, orphan = self._order[0]
            waiting = self._waiting.get(key)
            if waiting is None or orphan not in waiting:
                self._order.popleft()
                continue
            if orphan.since > before:
                return None
            self._order.popleft()
            waiting.remove(orphan)
            if not waiting:
                del self._waiting[key]
            self._count -= 1
            self.size -= orphan.size
            return key, orphan
        return None

    def drop(self, before: float, most: int) -> Iterator[Orphan]:
        """Take out the oldest ones taken in up to `before`, `most` of them."""
        for _ in range(most):
            found = self.oldest(before)
            if found is None:
                return
            yield found[1]

    def restart(self, now: int) -> None:
        """Let the wait of all begin now."""
        waiting = [
            (key, orphan._replace(since=now)) for key, found in self._waiting.items() for orphan in found
        ]
        self._waiting, self._count, self.size = {}, 0, 0
        self._order.clear()
        for key, orphan in waiting:
            self.add(key, orphan)
