"""Bounds of fields. They are checked where bytes are decoded, in C; NaN is outside every bound."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

Ratio = Annotated[float, Meta(ge=0, le=1)]
MAX_MONEY = 1e12
Money = Annotated[float, Meta(ge=0, le=MAX_MONEY)]
MAX_DEADLINE_MS = 600_000
"""The longest deadline a request may ask for: 10 minutes."""
DEFAULT_DEADLINE_MS = 30_000
"""That of a request for which neither its caller nor the rules name one."""
DeadlineMs = Annotated[int, Meta(ge=1, le=MAX_DEADLINE_MS)]
TENANT = r"^[A-Za-z0-9._-]{1,64}$(?!\n)"
TENANT_WORDS = "1 to 64 of A-Z, a-z, 0-9, dot, underscore and hyphen"
Tenant = Annotated[str, Meta(pattern=TENANT)]
MAX_TASK = 128
MAX_TOPIC = 249
TaskName = Annotated[str, Meta(min_length=1, max_length=MAX_TASK)]
TopicName = Annotated[str, Meta(min_length=1, max_length=MAX_TOPIC)]
