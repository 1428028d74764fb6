"""What the claims of one request stand for, as far as it was read. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from schemas.claims import claims_in
from schemas.messages import Claim

Unopened = Literal["no_cloud_store", "object_unread"]
"""The constraint that closes the cloud to steps with claims."""


class Opened(NamedTuple):
    """`found` by claim; `closed` says why the cloud is closed to steps that take claims, None where all were
    read."""

    found: Mapping[Claim, Any] = {}
    closed: Unopened | None = None


UNREAD = Opened(closed="object_unread")


def claimed_names(inputs: Mapping[str, Any]) -> frozenset[str]:
    """The inputs that are a claim or hold one: what they are is not known before they are read."""
    return frozenset(name for name, value in inputs.items() if next(claims_in(value), None) is not None)
