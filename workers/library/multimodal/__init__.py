"""Texts and images of one request together."""

from __future__ import annotations

from workers.backends import Backend
from workers.backends.function import backends_of
from workers.library.align import align
from workers.library.multimodal.fuse import fuse


def offers() -> list[Backend]:
    """What this group has to offer."""
    return [*backends_of(align), *backends_of(fuse)]
