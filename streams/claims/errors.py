"""Errors of claim checks. Every one means that an object cannot be had, or not be kept."""

from __future__ import annotations

from schemas.errors import ErrorCode


class ClaimError(Exception):
    """Base of this package's errors. `code` is what an answer says of it, `outcome` what the metrics say."""

    code: ErrorCode = "object_missing"
    outcome = "failed"


class ObjectMissing(ClaimError):
    """There is no such object, or it is another one than the claim says (size, sha256)."""

    outcome = "missing"


class ObjectForbidden(ClaimError):
    """A claim that leads out of the store, or to what belongs to another tenant."""

    outcome = "forbidden"


class ObjectTooLarge(ClaimError):
    """More bytes than an object may have, or than its reader has room for."""

    outcome = "too_large"


class ObjectUnreadable(ClaimError):
    """The object is not what its content type says."""

    outcome = "unreadable"


class StoreAway(ClaimError):
    """The store did not answer in time, or refused; or none is configured."""

    outcome = "away"
