"""A cache in this process, for where router and aggregator share it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from streams.cache.entries import NOTHING
from streams.cache.ports import MAX_ENTRY_BYTES

MIB = 2**20
_OVERHEAD = 300
"""Bytes that an entry takes beside its value."""


class _Kept(NamedTuple):
    value: bytes
    expires: float


class MemoryCache:
    """A Cache of at most `limit` entries and `limit_bytes`; above these what was used longest ago goes first.

    `clock` gives seconds and never goes back.
    """

    def __init__(
        self, clock: Callable[[], float], *, limit: int = 20_000, limit_bytes: int = 32 * MIB
    ) -> None:
        if limit < 1 or limit_bytes < 1:
            raise ValueError(f"limits must be at least 1, not {limit} entries and {limit_bytes} bytes")
        self._clock = clock
        self._limit = limit
        self._limit_bytes = limit_bytes
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._size = 0
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def size(self) -> int:
        """Bytes held, keys and all."""
        return self._size

    async def get(self, keys: Sequence[str]) -> list[bytes | None]:
        now = self._clock()
        return [self._get(key, now) for key in keys]

    async def put(self, entries: Sequence[tuple[str, bytes]], ttl_s: float) -> None:
        now = self._clock()
        for key, value in entries:
            if len(value) > MAX_ENTRY_BYTES or (value == NOTHING and self._get(key, now) is not None):
                continue
            self._drop(key)
            self._kept[key] = _Kept(value, now + ttl_s)
            self._size += _size_of(key, value)
        while len(self._kept) > self._limit or self._size > self._limit_bytes:
            self._drop(next(iter(self._kept)))
        self._changed.set()

    async def changed(self, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()
        except TimeoutError:
            return
        self._changed.clear()

    async def close(self) -> None:
        self._kept.clear()
        self._size = 0

    def _get(self, key: str, now: float) -> bytes | None:
        kept = self._kept.get(key)
        if kept is None:
            return None
        if kept.expires <= now:
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        return kept.value

    def _drop(self, key: str) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._size -= _size_of(key, kept.value)


def _size_of(key: str, value: bytes) -> int:
    return len(key) + len(value) + _OVERHEAD
