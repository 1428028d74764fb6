"""Clearances: the only key to `cloud.*` topics, each good for exactly one payload."""

from __future__ import annotations

import hashlib

from schemas.messages import Verdict

_SEAL = object()


class Forbidden(Exception):
    """A payload that must not leave for the cloud."""


class Clearance:
    """Proof that privacy examined a payload and let it go. Made by `clear` alone; `digest` is the payload's
    sha256."""

    __slots__ = ("digest",)
    digest: bytes

    def __init__(self, digest: bytes, *, seal: object = None) -> None:
        if seal is not _SEAL:
            raise TypeError("a Clearance is made by streams.privacy.clearance.clear alone")
        object.__setattr__(self, "digest", digest)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Clearance is for the payload that was examined, and for no other")

    def __init_subclass__(cls) -> None:
        raise TypeError("a Clearance has no other makers")

    def __reduce__(self) -> str:
        raise TypeError("a Clearance does not travel; it is made where the payload is examined")

    def covers(self, value: bytes) -> bool:
        """Whether `value` is the payload that was examined."""
        return hashlib.sha256(value).digest() == self.digest


def clear(verdict: Verdict, value: bytes) -> Clearance:
    """The clearance of `value`, the encoded record value, under `verdict`.

    Raises:
        Forbidden: where the verdict says `high`.
    """
    if verdict.level != "normal":
        raise Forbidden("privacy verdict is high: " + (", ".join(verdict.reasons) or "declared"))
    return Clearance(hashlib.sha256(value).digest(), seal=_SEAL)
