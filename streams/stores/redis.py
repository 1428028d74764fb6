"""Seen ids on Redis or Valkey: one Lua script per batch, so looking and storing are one step for all."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from streams.stores.errors import StoreUnavailable

log = logging.getLogger(__name__)

TIMEOUT_S = 0.3
TELL_EVERY_S = 10.0
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


def address_of(url: str) -> str:
    """The URL as it may be shown: without password and query, where a password may stand as well."""
    parts = urlsplit(url)
    login, at, place = parts.netloc.rpartition("@")
    user, colon, _ = login.partition(":")
    return f"{parts.scheme}://{user}{colon and ':***'}{at}{place}{parts.path}"


class RedisSeenStore:
    """A SeenStore on Redis 6.2 or newer, or Valkey.

    A call lasts `timeout_s` at most, connecting and one retry on a fresh connection included: which
    connections a restarted server has dropped is found out by using them. That it is away is logged once in
    TELL_EVERY_S, and that it is back.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float = TIMEOUT_S,
        prefix: str = PREFIX,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._address = address_of(url)
        self._clock = clock
        self._away = False
        self._told = -TELL_EVERY_S
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
            self._note_away(error)
            what = str(error) or f"no answer within {self._timeout_s} s"
            raise StoreUnavailable(f"Redis is away ({type(error).__name__}: {what})") from error
        self._note_back()
        return found

    async def look(self) -> None:
        """Find out whether the server answers, and log it where it does not."""
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._script(keys=[], args=[1])
        except (RedisError, OSError, TimeoutError) as error:
            self._note_away(error)

    def _note_away(self, error: Exception) -> None:
        self._away = True
        now = self._clock()
        if now - self._told >= TELL_EVERY_S:
            self._told = now
            log.warning(
                "Redis at %s is away (%s): until it is back, repeated ids go unnoticed by the router",
                self._address,
                type(error).__name__,
            )

    def _note_back(self) -> None:
        if self._away:
            self._away = False
            self._told = -TELL_EVERY_S
            log.warning("Redis at %s is back", self._address)

    async def close(self) -> None:
        await self._redis.aclose()
