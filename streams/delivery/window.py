"""The window: offsets of one partition between the log and the commit. Pure."""

from __future__ import annotations

from collections import deque


class Window:
    """Offsets taken and not yet finished; they may have gaps.

    `watermark` is the smallest unfinished offset, the only one that may be committed. `frontier` is the
    smallest offset that
    is neither finished nor absorbed: an aggregator absorbs a record into an open join long before it is
    finished.
    """

    def __init__(self, start: int) -> None:
        self._next = start
        self._sizes: dict[int, int] = {}
        self._absorbed: set[int] = set()
        self._unfinished: deque[int] = deque()
        self._unhandled: deque[int] = deque()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._sizes)

    @property
    def next(self) -> int:
        """The offset after the last one taken."""
        return self._next

    def take(self, offset: int, size: int) -> None:
        """Take in `offset` with `size` bytes. Offsets come in rising order.

        Raises:
            ValueError: for an offset that was passed already.
        """
        if offset < self._next:
            raise ValueError(f"offset {offset} was taken already; the next is {self._next}")
        self._next = offset + 1
        self._sizes[offset] = size
        self._unfinished.append(offset)
        self._unhandled.append(offset)
        self.bytes += size

    def absorb(self, offset: int) -> bool:
        """Note that `offset` was handled, but stays unfinished. False where it is not open."""
        if offset not in self._sizes:
            return False
        self._absorbed.add(offset)
        return True

    def finish(self, offset: int) -> bool:
        """Finish `offset`. False where it is not open: finished before, or never taken."""
        size = self._sizes.pop(offset, None)
        if size is None:
            return False
        self._absorbed.discard(offset)
        self.bytes -= size
        return True

    def is_waiting(self, offset: int) -> bool:
        """Whether `offset` was taken and neither finished nor absorbed."""
        return offset in self._sizes and offset not in self._absorbed

    @property
    def watermark(self) -> int:
        """The smallest unfinished offset; with none, the next to come."""
        # A dict loses its first keys slowly (it scans over the gaps), so the order is kept apart.
        head = self._unfinished
        while head and head[0] not in self._sizes:
            head.popleft()
        return head[0] if head else self._next

    @property
    def frontier(self) -> int:
        """The smallest offset neither finished nor absorbed; with none, the next to come."""
        head = self._unhandled
        while head and not self.is_waiting(head[0]):
            head.popleft()
        return head[0] if head else self._next
