"""Positions."""

from __future__ import annotations

from workers.backends import Backend
from workers.backends.function import backends_of
from workers.library.geo.gps_check import gps_check


def offers() -> list[Backend]:
    """What this group has to offer."""
    return [*backends_of(gps_check)]
