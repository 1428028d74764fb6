"""The cache of answers of one process: what the router looks up, the aggregator puts in."""

from __future__ import annotations

import time

from edgeway.roles.process import Process
from streams.cache import Cache, MemoryCache, RedisCache
from streams.stores import shared_link

ALL_ROLES = "up"
"""The process in which router and aggregator share a memory."""


def cache_for(process: Process) -> Cache | None:
    """The one cache of `process`: on Redis where one is given, in memory in `edgeway up`, else none, since
    nobody could read what another role keeps in its own memory.

    It is there for rules that keep no answers (`cache_s` 0), too: others may follow. It is closed after all
    that writes to it.
    """
    known: Cache | None = process.shared.get("cache")
    if known is not None:
        return known
    if process.settings.redis is not None:
        cache: Cache = RedisCache(shared_link(process.settings.redis))
    elif process.name == ALL_ROLES:
        cache = MemoryCache(time.monotonic)
    else:
        return None
    process.shared["cache"] = cache

    async def close_last() -> None:
        # By now every role has named what it ends with, and what the aggregator ends with fills the cache.
        process.after.append(cache.close)

    process.before.append(close_last)
    return cache
