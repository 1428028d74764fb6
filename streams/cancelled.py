"""The requests whose callers no longer want the answer. Pure: times are arguments, in ms."""

from __future__ import annotations

from schemas import codec, ids
from schemas.messages import Cancel

TTL_MS = 600_000
"""How long a cancellation holds: an id that is used again within it is cancelled too."""
LIMIT = 100_000
"""Most cancellations that are held; beyond it the oldest is forgotten, and what it named is executed."""


class Cancelled:
    """Scoped ids that were cancelled in the last TTL_MS, as far as `add` and `expire` were told the time."""

    def __init__(self, limit: int = LIMIT, ttl_ms: int = TTL_MS) -> None:
        self._limit = limit
        self._ttl_ms = ttl_ms
        self._at: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._at)

    def __contains__(self, key: object) -> bool:
        return key in self._at

    def add(self, key: str, at_ms: int) -> None:
        """The request `key` (a scoped id) was cancelled at `at_ms`."""
        # Last again, so that the first ones are always the oldest.
        self._at.pop(key, None)
        self._at[key] = at_ms
        if len(self._at) > self._limit:
            del self._at[next(iter(self._at))]
        self.expire(at_ms)

    def expire(self, now: int) -> None:
        """Forget what is older than the time to live at `now`."""
        while self._at:
            oldest = next(iter(self._at))
            if self._at[oldest] > now - self._ttl_ms:
                return
            del self._at[oldest]


def cancelled_key(value: bytes) -> str:
    """The scoped id that a record of `cancellations` names.

    Raises:
        Malformed: it is no Cancel, or its id is empty or too long.
    """
    cancel = codec.decode(value, Cancel)
    return ids.scoped(cancel.tenant, ids.check_id(cancel.id))
