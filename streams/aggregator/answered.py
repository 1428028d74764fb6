"""The ids that were answered lately, in little memory."""

from __future__ import annotations

from collections import OrderedDict

from streams.aggregator.limits import Limits

_TIME_BITS = 44
_TIME_MASK = (1 << _TIME_BITS) - 1
_HASH_MASK = (1 << 61) - 1
_SWEEP = 64


class Answered:
    """Answered ids with the digest of what was asked; forgotten after a time, the oldest first where they
    are many.

    Only hashes are kept (about 120 bytes an id): two ids meet in one with odds of 1 to 2^61. At a constant
    rate of requests the memory is constant: beyond `Limits.answered` ids only those younger than
    `answered_least_ms` stay.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._entries: OrderedDict[int, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        return hash(key) in self._entries

    def conflicts(self, key: str, digest: str | None) -> bool:
        """Whether `key`, which is answered, was asked with other content. An unknown digest conflicts with
        none."""
        known = self._entries[hash(key)] >> _TIME_BITS
        return bool(known) and digest is not None and known != _mark(digest)

    def add(self, key: str, digest: str | None, now: int) -> None:
        """Note that `key` is answered."""
        mark = 0 if digest is None else _mark(digest)
        number = hash(key)
        self._entries[number] = mark << _TIME_BITS | now & _TIME_MASK
        self._entries.move_to_end(number)
        self._sweep(now)

    def _sweep(self, now: int) -> None:
        limits = self._limits
        for _ in range(_SWEEP):
            if not self._entries:
                return
            oldest = next(iter(self._entries.values())) & _TIME_MASK
            age, many = now - oldest, len(self._entries)
            if (
                age > limits.answered_ms
                or (many > limits.answered and age > limits.answered_least_ms)
                or many > limits.answered_most
            ):
                self._entries.popitem(last=False)
            else:
                return


def _mark(digest: str) -> int:
    return hash(digest) & _HASH_MASK | 1
