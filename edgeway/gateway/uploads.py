"""Files that are too large for a record: how large they may be, and where they are put."""

from __future__ import annotations

from typing import NamedTuple

from edgeway.gateway.problems import refused
from schemas.messages import Claim
from streams.claims import ClaimError, Objects, ObjectTooLarge
from workers.http.problems import Refused


class Uploads(NamedTuple):
    """Bodies have at most `most_bytes`; larger files lie in `objects`."""

    objects: Objects
    most_bytes: int

    @property
    def stores(self) -> bool:
        """Whether files can go by claim check."""
        return self.objects.local is not None

    def check_length(self, text: str | None, most: int) -> None:
        """Refuse a body whose Content-Length says more than `most` bytes.

        Raises:
            Refused: too large, or no number.
        """
        if text is None:
            return
        if not (text.isascii() and text.isdigit()):
            raise refused("malformed", "Content-Length is no number")
        if len(text) > 18 or int(text) > most:
            raise refused("too_large", f"a body of this kind has at most {most} bytes; send less")

    def too_large(self) -> Refused:
        """The refusal of a form that turns out to be too large."""
        return refused("too_large", f"a form has at most {self.most_bytes} bytes; send less")

    async def put(self, data: bytes, content_type: str | None, tenant: str | None) -> Claim:
        """Keep a file; it can be read by workers once this returns.

        Raises:
            Refused: it cannot be kept.
        """
        store = self.objects.local
        assert store is not None
        try:
            return await store.put(data, content_type=content_type or None, tenant=tenant)
        except ObjectTooLarge as error:
            raise refused("too_large", str(error)) from error
        except ClaimError as error:
            raise refused(
                "overloaded", "the object store keeps nothing now", title="Not ready", retry_after_s=2.0
            ) from error

    async def get(self, claim: Claim, tenant: str | None) -> bytes:
        """What was put where, for whoever may have it.

        Raises:
            Refused: it is not there, or the store is away.
        """
        try:
            return await self.objects.get(claim, tenant=tenant)
        except ClaimError as error:
            raise refused("object_missing", str(error), status=502, title="The output is away") from error
