"""Which claims a record carries. Pure."""

from __future__ import annotations

from collections.abc import Callable

from schemas import codec
from schemas.claims import claims_in
from schemas.errors import Malformed
from schemas.messages import Subtask

_MARK = b"dataref"
_ESCAPED = b"\\u00"


def may_hold_claims(value: bytes) -> bool:
    """Whether a record may hold a claim at all: most have not even the word. JSON may write it in escapes."""
    return _MARK in value or _ESCAPED in value


def claims_allow(value: bytes, in_cloud: Callable[[str], bool]) -> bool:
    """Whether every claim in a subtask's record is of an object in the cloud's store. What cannot be read is
    not allowed."""
    if not may_hold_claims(value):
        return True
    try:
        subtask = codec.decode(value, Subtask)
    except Malformed:
        return False
    claims = [*claims_in(subtask.inputs), *claims_in(subtask.params)]
    if subtask.claim is not None:
        claims.append(subtask.claim)
    return all(in_cloud(claim.dataref) for claim in claims)
