"""Bounds of fields. They are checked where bytes are decoded, in C; NaN is outside every bound."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

Ratio = Annotated[float, Meta(ge=0, le=1)]
MAX_MONEY = 1e12
Money = Annotated[float, Meta(ge=0, le=MAX_MONEY)]
MAX_DEADLINE_MS = 600_000
"""The longest deadline a request may ask for: 10 minutes."""
DeadlineMs = Annotated[int, Meta(ge=1, le=MAX_DEADLINE_MS)]
Tenant = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]{1,64}$(?!\n)")]
TaskName = Annotated[str, Meta(min_length=1, max_length=128)]
TopicName = Annotated[str, Meta(min_length=1, max_length=249)]
