"""The object stores of one process, and which claim is whose."""

from __future__ import annotations

from typing import NamedTuple

from schemas.messages import Claim, Side
from streams.claims.errors import ClaimError, ObjectForbidden, StoreAway
from streams.claims.names import is_below, overlap
from streams.claims.ports import MAX_OBJECT_BYTES, ObjectStore
from streams.claims.store import open_store


class Objects(NamedTuple):
    """The store of the edge and that of the cloud; either may be None. What lies in the cloud's was
    examined, or came out of the cloud."""

    local: ObjectStore | None = None
    cloud: ObjectStore | None = None

    def at(self, side: Side) -> ObjectStore | None:
        """The store of a side."""
        return self.local if side == "local" else self.cloud

    def is_cloud(self, dataref: str) -> bool:
        """Whether an object lies in the cloud's store."""
        return self.cloud is not None and is_below(self.cloud.base, dataref)

    async def get(self, claim: Claim, *, tenant: str | None, limit: int = MAX_OBJECT_BYTES) -> bytes:
        """The object of `claim`, from whichever store it is of.

        Raises:
            StoreAway: no store is configured, or the one does not answer.
            ObjectForbidden, ObjectTooLarge, ObjectMissing: as ObjectStore.get.
        """
        stores = [store for store in self if store is not None]
        if not stores:
            raise StoreAway(
                "the payload is in an object store and none is configured here; give --objects, or send it "
                "in the record"
            )
        for store in stores:
            if is_below(store.base, claim.dataref):
                return await store.get(claim, tenant=tenant, limit=limit)
        raise ObjectForbidden("the claim is of another object store than those that are configured here")

    async def close(self) -> None:
        """Let go of both."""
        for store in self:
            if store is not None:
                await store.close()


NO_OBJECTS = Objects()


def open_objects(local: str | None, cloud: str | None) -> Objects:
    """The stores at these URLs.

    Raises:
        ClaimError: a URL that names none, or two of which one lies in the other: what is kept at the edge
            would lie in the cloud.
    """
    found = Objects(
        None if local is None else open_store(local), None if cloud is None else open_store(cloud)
    )
    if found.local is not None and found.cloud is not None and overlap(found.local.base, found.cloud.base):
        raise ClaimError("the object stores of the edge and the cloud lie in each other; give two places")
    return found
