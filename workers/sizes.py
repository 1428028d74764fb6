"""How many rows a batch should have, and roughly what a row holds in memory: pure."""

from __future__ import annotations

from typing import Any

ONE_BY_ONE_MS = 20.0
"""How long a batch of rows that run one after the other may take: 32 calls of 50 ms in one batch looked to
the breaker like calls of 1.6 s, and kept the first answer as long."""

QUICK_MS = 5.0
"""A batch that takes no longer than this keeps nobody waiting."""
WORTH = 0.1
"""A larger batch is worth the wait for it where a row costs this share less in it."""
FADING = 0.2
PROBE_EVERY = 64


def rows_one_by_one(most: int, rows: int, took_ms: float) -> int:
    """How many such rows the next batch may have, where the last one had `rows` and took `took_ms`."""
    return max(1, min(most, int(ONE_BY_ONE_MS * rows / max(took_ms, 0.001))))


class BatchSize:
    """The largest batch that is worth its wait, as measured: `most` until runs say otherwise.

    A model whose batch of 32 takes 32 times as long as one row answers the first row with the last and gains
    nothing by it. So of the sizes seen (by powers of two) the smallest counts whose rows cost at most WORTH
    more than in the best one; larger ones than any seen are tried doubling, smaller ones halving, and every
    PROBE_EVERY runs the next larger one is tried again. Runs within QUICK_MS are never cut.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._took: dict[int, float] = {}
        self._runs = 0

    def learn(self, rows: int, took_ms: float) -> int:
        """A batch of `rows` took so long; how many the next one may have."""
        size = rows.bit_length() - 1
        each = took_ms / rows
        known = self._took.get(size)
        # Down at once and up slowly: what else the machine does can only make a run slower.
        self._took[size] = each if known is None or each < known else known + FADING * (each - known)
        self._runs += 1
        return self.limit()

    def limit(self) -> int:
        """How many rows a batch may have."""
        if not self._took:
            return self._most
        least = (1.0 + WORTH) * min(self._took.values())
        largest = max(self._took)
        size = min(size for size, each in self._took.items() if each <= least)
        while size + 1 in self._took and self._is_quick(size + 1):
            size += 1
        if size > 0 and size - 1 not in self._took and not self._is_quick(size):
            # Where all come at once nobody would ever see what fewer cost.
            return min(self._most, 1 << (size - 1))
        if size == largest:
            # Nothing speaks against more; where a run takes time by doubling only.
            return self._most if self._is_quick(size) else min(self._most, 2 << size)
        if self._runs % PROBE_EVERY == 0:
            size += 1
        return min(self._most, 1 << size)

    def _is_quick(self, size: int) -> bool:
        return self._took[size] * (1 << size) <= QUICK_MS


_NUMBER, _OTHER = 32, 64
_SCALARS = frozenset((float, int, bool, type(None)))


def weight(value: Any) -> int:
    """About how many bytes a decoded value takes; a list of numbers takes many times its record's bytes."""
    kind = type(value)
    if kind is bytes or kind is str:
        return _OTHER + len(value)
    if kind is dict:
        return _OTHER + sum(2 * _OTHER + weight(each) for each in value.values())
    if kind is list:
        if _SCALARS.issuperset(map(type, value)):
            return _OTHER + _NUMBER * len(value)
        return _OTHER + sum(map(weight, value))
    return _NUMBER
