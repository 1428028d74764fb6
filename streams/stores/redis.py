"""Seen ids on Redis or Valkey: one Lua script per batch, so looking and storing are one step for all."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from streams.stores.link import TIMEOUT_S, RedisLink, Script

PREFIX = "edgeway:{seen}:"  # the braces put all ids in one slot of a Redis cluster, as the script needs it

# KEYS are ids, ARGV is the life in seconds and then one mark for each id. A missing key is `false` in Lua.
FIRST_SEEN = Script("""
local found = {}
for i, key in ipairs(KEYS) do
  found[i] = redis.call('GET', key)
  if not found[i] then
    redis.call('SET', key, ARGV[i + 1], 'EX', ARGV[1])
  end
end
return found
""")


class RedisSeenStore:
    """A SeenStore on Redis, by a link of its own or by the one given, which it then closes as one holder."""

    def __init__(
        self,
        url: str | RedisLink,
        *,
        timeout_s: float = TIMEOUT_S,
        prefix: str = PREFIX,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._link = RedisLink(url, timeout_s=timeout_s, clock=clock) if isinstance(url, str) else url
        self._prefix = prefix
        self._closed = False

    async def first_seen(self, entries: Sequence[tuple[str, str]], ttl_s: int) -> list[str | None]:
        if ttl_s < 1:
            raise ValueError(f"ttl_s must be at least 1, not {ttl_s}")
        if not entries:
            return []
        keys = [self._prefix + id_ for id_, _ in entries]
        marks = [mark for _, mark in entries]
        found: list[bytes | None] = await self._link.run(FIRST_SEEN, keys, [ttl_s, *marks])
        return [None if mark is None else mark.decode() for mark in found]

    async def look(self) -> None:
        """Find out whether the server answers; it is logged where it does not."""
        await self._link.look()

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await self._link.close()
