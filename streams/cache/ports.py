"""What the router and the aggregator ask of a cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

MAX_ENTRY_BYTES = 256 * 1024
"""A larger entry is not kept: what travels in a record beyond this goes by claim check."""


class Cache(Protocol):
    """Keeps entries (streams.cache.entries) under keys (streams.cache.keys) for a while. It may forget any of
    them at any time."""

    async def get(self, keys: Sequence[str]) -> list[bytes | None]:
        """The entry of each key, None where there is none. One round trip for all.

        Raises:
            StoreUnavailable: the store is away.
        """
        ...

    async def put(self, entries: Sequence[tuple[str, bytes]], ttl_s: float) -> None:
        """Keep each (key, entry) for `ttl_s` seconds. One round trip for all. Entries above MAX_ENTRY_BYTES
        are left out, and NOTHING replaces no other entry.

        Raises:
            StoreUnavailable: the store is away; whether it keeps them is unknown.
        """
        ...

    async def changed(self, timeout_s: float) -> None:
        """Return when it is worth asking again, after `timeout_s` seconds at the latest."""
        ...

    async def close(self) -> None:
        """Give back what it holds. Harmless when repeated."""
        ...
