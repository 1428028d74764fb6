"""A cache on Redis or Valkey, for roles in processes of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from streams.cache.entries import NOTHING
from streams.cache.ports import MAX_ENTRY_BYTES
from streams.stores.link import RedisLink, Script

PREFIX = "edgeway:{cache}:"
"""The braces put all keys in one slot of a Redis cluster, as the calls need it."""

# KEYS are the keys, ARGV is the life in ms, NOTHING, and then one entry for each key.
PUT = Script(
    """
for i, key in ipairs(KEYS) do
  if ARGV[i + 2] == ARGV[2] then
    redis.call('SET', key, ARGV[i + 2], 'PX', ARGV[1], 'NX')
  else
    redis.call('SET', key, ARGV[i + 2], 'PX', ARGV[1])
  end
end
"""
)


class RedisCache:
    """A Cache on the server of `link`, which is closed with it. What expires Redis forgets by itself."""

    def __init__(self, link: RedisLink, prefix: str = PREFIX) -> None:
        self._link = link
        self._prefix = prefix
        self._is_open = True

    async def get(self, keys: Sequence[str]) -> list[bytes | None]:
        if not keys:
            return []
        found: list[bytes | None] = await self._link.call("MGET", *[self._prefix + key for key in keys])
        return found

    async def put(self, entries: Sequence[tuple[str, bytes]], ttl_s: float) -> None:
        entries = [(key, value) for key, value in entries if len(value) <= MAX_ENTRY_BYTES]
        if entries:
            keys = [self._prefix + key for key, _ in entries]
            life_ms = max(1, int(ttl_s * 1000))
            await self._link.run(PUT, keys, [life_ms, NOTHING, *[value for _, value in entries]])

    async def changed(self, timeout_s: float) -> None:
        # Another process writes: it cannot be told but by asking.
        await asyncio.sleep(timeout_s)

    async def close(self) -> None:
        if self._is_open:
            self._is_open = False
            await self._link.close()
