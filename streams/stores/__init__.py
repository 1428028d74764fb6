"""Stores that several processes of a role share: in memory for one process, on Redis for many."""

from __future__ import annotations

import time

from streams.stores.errors import StoreError, StoreUnavailable
from streams.stores.link import RedisLink, Script, shared_link
from streams.stores.memory import MemorySeenStore
from streams.stores.ports import SeenStore
from streams.stores.redis import RedisSeenStore

__all__ = [
    "MemorySeenStore",
    "RedisLink",
    "RedisSeenStore",
    "Script",
    "SeenStore",
    "StoreError",
    "StoreUnavailable",
    "seen_store",
    "shared_link",
]


IN_MEMORY = 20_000
"""Ids that a process remembers by itself (8 MB): the memory of a role is flat from there on. The aggregator
knows what it answered, and a Redis keeps every id for its whole time."""


def seen_store(url: str | None) -> SeenStore:
    """The store of seen ids at a `redis://` URL, by the process' one link to it, or one in this process
    without. Connects at first use."""
    if url is None:
        return MemorySeenStore(time.monotonic, IN_MEMORY)
    return RedisSeenStore(shared_link(url))
