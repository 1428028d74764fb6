"""Dynamic batching across requests: pure, time is an argument (ms on any steady clock).

Jobs of equal `key` (kin) may share a batch. The kin whose first job is oldest goes first, so none starves;
within a kin the order is that of arrival.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, Protocol, TypeVar


class Job(Protocol):
    """What can be batched: `size` in bytes, `limit` the largest batch that it agrees to, `arrived` in ms."""

    @property
    def key(self) -> Hashable: ...
    @property
    def size(self) -> int: ...
    @property
    def limit(self) -> int: ...
    @property
    def arrived(self) -> float: ...


J = TypeVar("J", bound=Job)


class Batcher(Generic[J]):
    """Jobs that wait for a model, within `max_rows` and `max_bytes`.

    `max_batch` rows at most share a run; while the model is busy a batch that is not full waits `max_wait_ms`
    at most.
    """

    def __init__(self, max_batch: int, max_wait_ms: float, max_rows: int, max_bytes: int) -> None:
        self._max_batch = max_batch
        self.max_wait_ms = max_wait_ms
        self._max_rows, self._max_bytes = max_rows, max_bytes
        self._kin: dict[Hashable, deque[tuple[int, J]]] = {}
        self._heads: list[tuple[int, Hashable]] = []
        self._full: set[Hashable] = set()
        self._next = 0
        self.rows = 0
        self.bytes = 0

    @property
    def max_batch(self) -> int:
        return self._max_batch

    @max_batch.setter
    def max_batch(self, most: int) -> None:
        if most != self._max_batch:
            self._max_batch = most
            self._full = {key for key, queue in self._kin.items() if self._is_full(queue)}

    def __len__(self) -> int:
        return self.rows

    def room(self, size: int) -> bool:
        """Whether a job of `size` bytes fits. One always fits into an empty batcher, however large."""
        return not self.rows or (self.rows < self._max_rows and self.bytes + size <= self._max_bytes)

    def put(self, job: J) -> None:
        """Take `job`; the caller has asked for room."""
        queue = self._kin.get(job.key)
        if queue is None:
            queue = self._kin[job.key] = deque()
            heapq.heappush(self._heads, (self._next, job.key))
        queue.append((self._next, job))
        self._next += 1
        self.rows += 1
        self.bytes += job.size
        if self._is_full(queue):
            self._full.add(job.key)

    def take(self, now: float, idle: bool) -> list[J]:
        """The next batch, empty where none should start yet: any while `idle`, else a full or overdue one."""
        if not self.rows:
            return []
        key = self._oldest()
        if not idle and now < self._kin[key][0][1].arrived + self.max_wait_ms:
            if not self._full:
                return []
            key = min(self._full, key=lambda kin: self._kin[kin][0][0])
        return self._cut(key)

    def due(self) -> float | None:
        """When the oldest job becomes overdue, None where nothing waits."""
        return self._kin[self._oldest()][0][1].arrived + self.max_wait_ms if self.rows else None

    def drop(self, unwanted: Callable[[J], bool]) -> list[J]:
        """Take out every job that is `unwanted` and give them back, in no order."""
        dropped: list[J] = []
        kept: list[tuple[int, J]] = []
        for queue in self._kin.values():
            for entry in queue:
                (dropped.append(entry[1]) if unwanted(entry[1]) else kept.append(entry))
        if dropped:
            self._rebuild(sorted(kept, key=lambda entry: entry[0]))
        return dropped

    def __iter__(self) -> Iterator[J]:
        return (job for queue in self._kin.values() for _, job in queue)

    def _oldest(self) -> Hashable:
        """The kin of the oldest job. Heads that were taken out of turn, as a full batch, are skipped here."""
        while True:
            number, key = self._heads[0]
            queue = self._kin.get(key)
            if queue is not None and queue[0][0] == number:
                return key
            heapq.heappop(self._heads)

    def _cut(self, key: Hashable) -> list[J]:
        queue = self._kin[key]
        batch: list[J] = []
        limit = self.max_batch
        while queue:
            limit = min(limit, queue[0][1].limit)
            if batch and len(batch) >= limit:
                break
            job = queue.popleft()[1]
            batch.append(job)
            self.bytes -= job.size
        self.rows -= len(batch)
        self._full.discard(key)
        if not queue:
            del self._kin[key]
        else:
            heapq.heappush(self._heads, (queue[0][0], key))
            if self._is_full(queue):
                self._full.add(key)
        return batch

    def _is_full(self, queue: deque[tuple[int, J]]) -> bool:
        return len(queue) >= min(self._max_batch, queue[0][1].limit)

    def _rebuild(self, entries: list[tuple[int, J]]) -> None:
        self._kin.clear()
        self._heads.clear()
        self._full.clear()
        self.rows = self.bytes = 0
        for _, job in entries:
            self.put(job)
