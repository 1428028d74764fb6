"""Traffic: forecasts and congestion."""

from __future__ import annotations

from workers.backends import Backend


def offers() -> list[Backend]:
    """What this group has to offer."""
    return []
