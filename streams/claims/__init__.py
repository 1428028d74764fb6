"""Claim checks: what is too large for a record lies in an object store, and a claim travels in its place."""

from __future__ import annotations

from streams.claims.errors import (
    ClaimError,
    ObjectForbidden,
    ObjectMissing,
    ObjectTooLarge,
    ObjectUnreadable,
    StoreAway,
)
from streams.claims.objects import NO_OBJECTS, Objects, open_objects
from streams.claims.ports import MAX_OBJECT_BYTES, ObjectStore
from streams.claims.store import FsspecStore, open_store

__all__ = [
    "MAX_OBJECT_BYTES",
    "NO_OBJECTS",
    "ClaimError",
    "FsspecStore",
    "ObjectForbidden",
    "ObjectMissing",
    "ObjectStore",
    "ObjectTooLarge",
    "ObjectUnreadable",
    "Objects",
    "StoreAway",
    "open_objects",
    "open_store",
]
