"""Traffic: forecasts and congestion."""

from __future__ import annotations

from workers.backends import Backend
from workers.backends.function import backends_of


def offers() -> list[Backend]:
    """What this group has to offer."""
    from workers.library.traffic.congestion import congestion
    from workers.library.traffic.forecast import forecast

    return [*backends_of(forecast), *backends_of(congestion)]
