"""Edgeway: hybrid inference over Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgeway.client import (
        Client,
        HttpClient,
        SyncClient,
        SyncHttpClient,
        output_as,
        raise_for_error,
        result_of,
    )

__all__ = [
    "Client",
    "HttpClient",
    "SyncClient",
    "SyncHttpClient",
    "output_as",
    "raise_for_error",
    "result_of",
]


def __getattr__(name: str) -> Any:
    # Only when asked for: every command imports this package, and most need no client.
    if name in __all__:
        from edgeway import client

        return getattr(client, name)
    raise AttributeError(f"module 'edgeway' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
