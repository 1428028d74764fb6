"""When each join must be looked at again: one heap a lane."""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from streams.aggregator.join import Join

_NEVER = float("inf")
_SPARE = 1_024


class Timers:
    """Joins by the time at which they are due. An entry that an earlier one overtook stays and is skipped.

    Entries name the join instead of holding it: a closed join must not live on until its deadline.
    """

    def __init__(self, joins: Mapping[str, Join]) -> None:
        self._joins = joins
        self._heap: list[tuple[int, int, str]] = []
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._heap)

    def set(self, join: Join, due: int) -> None:
        """Have `join` looked at by `due`."""
        if due >= join.scheduled:
            return
        join.scheduled = due
        self._sequence += 1
        heapq.heappush(self._heap, (due, self._sequence, join.id))

    def pop(self, now: int) -> Join | None:
        """A join that is due, or None."""
        while self._heap and self._heap[0][0] <= now:
            due, _, key = heapq.heappop(self._heap)
            join = self._joins.get(key)
            if join is not None and join.scheduled == due:
                join.scheduled = _NEVER
                return join
        return None

    def compact(self) -> None:
        """Forget closed joins once most entries are such."""
        if len(self._heap) <= 2 * len(self._joins) + _SPARE:
            return
        self._heap = [entry for entry in self._heap if self._is_live(entry)]
        heapq.heapify(self._heap)

    def _is_live(self, entry: tuple[int, int, str]) -> bool:
        join = self._joins.get(entry[2])
        return join is not None and join.scheduled == entry[0]
