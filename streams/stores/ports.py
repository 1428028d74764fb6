"""What a role asks of a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class SeenStore(Protocol):
    """Remembers under which mark an id was first seen. The mark says which content and record it was."""

    async def first_seen(self, entries: Sequence[tuple[str, str]], ttl_s: int) -> list[str | None]:
        """For each (id, mark): the mark stored earlier, or None where this call stored its own.

        One round trip for all entries. An id that occurs twice in one call is answered with the first
        one's mark. An entry is kept `ttl_s` seconds (at least 1) from when it was stored; asking again does
        not prolong it. Asking again after StoreUnavailable may be answered with one's own mark: the lost call
        may have stored it.

        Raises StoreUnavailable where the store is away, ValueError where `ttl_s` is below 1.
        """
        ...

    async def close(self) -> None:
        """Give the connections back. Harmless when repeated."""
        ...
