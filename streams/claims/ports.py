"""What the roles ask of an object store."""

from __future__ import annotations

from typing import Protocol

from schemas.messages import Claim

MAX_OBJECT_BYTES = 64 * 1024 * 1024
"""The largest object that is written or read."""


class ObjectStore(Protocol):
    """Objects below one base URL, each tenant's below a prefix of its own. What is written is never changed,
    and never removed from here: how long objects stay is the operator's to say."""

    @property
    def base(self) -> str:
        """The URL that every `dataref` of this store begins with, without credentials or a closing slash."""

    async def put(self, data: bytes, *, content_type: str | None, tenant: str | None) -> Claim:
        """Keep `data` under a name of its own; it can be read once this returns.

        Raises:
            ObjectTooLarge: more than MAX_OBJECT_BYTES.
            StoreAway: it may be there or not; nobody knows its name.
        """

    async def get(self, claim: Claim, *, tenant: str | None, limit: int = MAX_OBJECT_BYTES) -> bytes:
        """The object of `claim`, of the size and with the sha256 that it says.

        Raises:
            ObjectForbidden: it is not below this store's base and the prefix of `tenant`.
            ObjectTooLarge: it says more than `limit` bytes; nothing was read.
            ObjectMissing: it is not there, or not what the claim says.
            StoreAway: nobody knows.
        """

    async def close(self) -> None:
        """Let go of threads. What is under way ends by itself."""
