"""The requests that were sent through here and may still be answered. Pure."""

from __future__ import annotations

from collections import deque

from schemas.messages import MAX_DEADLINE_MS

KEEP_MS = MAX_DEADLINE_MS + 60_000
"""The longest deadline, and a takeover on top."""
MOST = 200_000


class Expected:
    """Keys of requests, of the `id_conflict` that each may get, and when they were sent (ms). The oldest are
    forgotten after KEEP_MS, or beyond `most`."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._sent: dict[bytes, tuple[int, int]] = {}
        self._others: dict[bytes, bytes] = {}
        self._open: set[bytes] = set()
        self._order: deque[tuple[int, bytes, bytes]] = deque()

    def add(self, key: bytes, other: bytes, at: int, *, answered: bool = False) -> None:
        """A request was sent; `other` is the key of its conflict."""
        first, _ = self._sent.get(key, (at, at))
        self._sent[key] = (first, at)
        self._others[other] = key
        self._order.append((at, key, other))
        if not answered:
            self._open.add(key)
        while len(self._order) > self._most:
            self._drop()

    def remove(self, key: bytes) -> None:
        """It was not sent after all."""
        self._open.discard(key)

    def answered(self, key: bytes) -> None:
        """`key`, of a request or a conflict, has an answer."""
        self._open.discard(self._others.get(key, key))

    def forget(self, now: int) -> None:
        """Forget what is too old to be answered at `now`."""
        while self._order and self._order[0][0] < now - KEEP_MS:
            self._drop()

    def __contains__(self, key: bytes) -> bool:
        """Whether an answer under `key` is of interest."""
        return key in self._sent or key in self._others

    def is_open(self, key: bytes) -> bool:
        """Whether its answer is still to come."""
        return key in self._open

    @property
    def open(self) -> int:
        """How many answers are still to come."""
        return len(self._open)

    def sent_at(self, key: bytes) -> int | None:
        """When the request was first sent, in ms; None where it was not through here."""
        found = self._sent.get(key)
        return None if found is None else found[0]

    def _drop(self) -> None:
        at, key, other = self._order.popleft()
        known = self._sent.get(key)
        if known is not None and known[1] <= at:
            # Not where it was sent again since.
            del self._sent[key]
            self._open.discard(key)
        if self._others.get(other) == key and key not in self._sent:
            del self._others[other]
