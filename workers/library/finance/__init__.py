"""Figures of reports, and charts."""

from __future__ import annotations

from workers.backends import Backend
from workers.backends.function import backends_of
from workers.library.finance.chart import chart
from workers.library.finance.indicators import indicators


def offers() -> list[Backend]:
    """What this group has to offer."""
    return [*backends_of(indicators), *backends_of(chart)]
