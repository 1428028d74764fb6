"""Seen ids on Redis or Valkey: one Lua script per batch, so looking and storing are one step for all."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from streams.stores.errors import StoreUnavailable

TIMEOUT_S = 0.3
PREFIX = "edgeway:{seen}:"  # the braces put all ids in one slot of a Redis cluster, as the script needs it

# KEYS are ids, ARGV is the life in seconds and then one mark for each id. A missing key is `false` in Lua.
FIRST_SEEN = """
local found = {}
for i, key in ipairs(KEYS) do
  found[i] = redis.call('GET', key)
  if not found[i] then
    redis.call('SET', key, ARGV[i + 1], 'EX', ARGV[1])
  end
end
return found
"""


class RedisSeenStore:
    """A SeenStore on Redis 6.2 or newer, or Valkey.

    A call lasts `timeout_s` at most, connecting and one retry on a fresh connection included: which
    connections a restarted server has dropped is found out by using them.
    """

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S, prefix: str = PREFIX) -> None:
        self._timeout_s = timeout_s
        self._prefix = prefix
        self._redis = Redis.from_url(
            url,
            decode_responses=True,
            socket_timeout=timeout_s,
            socket_connect_timeout=timeout_s,
            retry=Retry(NoBackoff(), 1),
        )
        self._script = self._redis.register_script(FIRST_SEEN)

    async def first_seen(self, entries: Sequence[tuple[str, str]], ttl_s: int) -> list[str | None]:
        if ttl_s < 1:
            raise ValueError(f"ttl_s must be at least 1, not {ttl_s}")
        if not entries:
            return []
        keys = [self._prefix + id_ for id_, _ in entries]
        marks = [mark for _, mark in entries]
        try:
            async with asyncio.timeout(self._timeout_s):
                found: list[str | None] = await self._script(keys=keys, args=[ttl_s, *marks])
        except (RedisError, OSError, TimeoutError) as error:
            what = str(error) or f"no answer within {self._timeout_s} s"
            raise StoreUnavailable(f"Redis is away ({type(error).__name__}: {what})") from error
        return found

    async def close(self) -> None:
        await self._redis.aclose()
