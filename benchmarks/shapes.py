"""What the floor writes: real records of Edgeway, so that the sizes are the same."""

from __future__ import annotations

import msgspec


class Template(msgspec.Struct):
    """Value and headers of one record."""

    value: bytes
    headers: list[tuple[str, bytes]]


class Templates(msgspec.Struct):
    """One of each. `request_pixels` and `subtask_pixels` are where the image starts in those records."""

    plan: Template
    subtask: Template
    partial: Template
    result: Template
    request_pixels: int
    subtask_pixels: int
