"""The answers of the last minutes, as the bytes they came in. Pure."""

from __future__ import annotations

from collections import deque

ENTRY_BYTES = 280
"""What an entry takes beyond its key and value: slots in a dict and a queue, the objects' own heads."""
GONE_BYTES = 200


class Remembered:
    """Raw records by key; the first of a key counts. Never more than `most_bytes`, counting ENTRY_BYTES an
    entry.

    What is dropped for want of room is dropped oldest first. Its key is kept as long as there is room for
    it, so that a duplicate that comes later is not taken for the answer.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._entries: dict[bytes, tuple[int, bytes] | None] = {}
        self._order: deque[bytes] = deque()
        self._gone: deque[tuple[int, bytes]] = deque()
        self._gone_bytes = 0
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._order)

    def add(self, key: bytes, raw: bytes, at: int) -> bool:
        """Keep what was appended at `at` (ms); False where `key` has been seen."""
        if key in self._entries:
            return False
        self._entries[key] = (at, raw)
        self._order.append(key)
        self.bytes += ENTRY_BYTES + len(key) + len(raw)
        while self.bytes > self._most:
            if self._gone and (4 * self._gone_bytes > self._most or not self._order):
                self._drop_gone()
            else:
                self._let_go()
        return True

    def get(self, key: bytes) -> bytes | None:
        """The bytes kept of `key`."""
        entry = self._entries.get(key)
        return None if entry is None else entry[1]

    def __contains__(self, key: bytes) -> bool:
        """Whether `key` has been seen, also if what it had is gone."""
        return key in self._entries

    def discard(self, key: bytes) -> None:
        """Take it that nothing was ever seen of `key`: what is kept is no answer."""
        entry = self._entries.get(key)
        if entry is not None:
            self._order.remove(key)
            del self._entries[key]
            self.bytes -= ENTRY_BYTES + len(key) + len(entry[1])

    def forget(self, before: int) -> None:
        """Forget all that was appended before `before` (ms)."""
        while self._order:
            entry = self._entries[self._order[0]]
            assert entry is not None
            if entry[0] >= before:
                break
            key = self._order.popleft()
            del self._entries[key]
            self.bytes -= ENTRY_BYTES + len(key) + len(entry[1])
        while self._gone and self._gone[0][0] < before:
            self._drop_gone()

    def _let_go(self) -> None:
        key = self._order.popleft()
        entry = self._entries[key]
        assert entry is not None
        self._entries[key] = None
        self._gone.append((entry[0], key))
        self._gone_bytes += GONE_BYTES + len(key)
        self.bytes -= ENTRY_BYTES + len(entry[1]) - GONE_BYTES

    def _drop_gone(self) -> None:
        _, key = self._gone.popleft()
        del self._entries[key]
        self._gone_bytes -= GONE_BYTES + len(key)
        self.bytes -= GONE_BYTES + len(key)
