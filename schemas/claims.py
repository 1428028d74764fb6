"""Claim checks as values: what stands among inputs and outputs for a payload that lies elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from schemas.messages import Claim

INLINE_BYTES = 256 * 1024
"""A value up to this size travels in the record; a larger one by claim check."""
_KEYS = frozenset(("dataref", "sha256", "size"))
_ALL_KEYS = _KEYS | {"content_type"}
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")


def claim_of(value: Any) -> Claim | None:
    """The claim that `value` is, a map of `dataref`, `sha256`, `size` and maybe `content_type`; else None."""
    if not isinstance(value, dict) or not _KEYS <= value.keys() <= _ALL_KEYS:
        return None
    dataref, digest, size, kind = (value.get(key) for key in ("dataref", "sha256", "size", "content_type"))
    if not (isinstance(dataref, str) and isinstance(digest, str) and _SHA256.fullmatch(digest)):
        return None
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        return None
    if kind is not None and not isinstance(kind, str):
        return None
    return Claim(dataref=dataref, sha256=digest.lower(), size=size, content_type=kind)


def as_value(claim: Claim) -> dict[str, Any]:
    """`claim` as a value among inputs or outputs; the inverse of `claim_of`."""
    found: dict[str, Any] = {"dataref": claim.dataref, "sha256": claim.sha256, "size": claim.size}
    if claim.content_type is not None:
        found["content_type"] = claim.content_type
    return found


def claims_in(value: Any) -> Iterator[Claim]:
    """Every claim in `value`, at any depth of its maps and lists."""
    pending = [value]
    while pending:
        one = pending.pop()
        claim = claim_of(one)
        if claim is not None:
            yield claim
        elif isinstance(one, dict):
            pending.extend(one.values())
        elif isinstance(one, list | tuple):
            pending.extend(one)
