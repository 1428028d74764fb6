"""Levels of congestion, by the share of the free-flow speed that is driven."""

from __future__ import annotations

LEVELS = ("free", "moderate", "heavy", "jam")
"""From best to worst."""
SHARES = (0.67, 0.50, 0.30)
"""At or below each the next level begins: levels of service C, D and F of urban streets, by travel speed as a
share of base free-flow speed (Highway Capacity Manual 2010, exhibit 17-2: A 85 %, B 67, C 50, D 40, E 30).
"""


def level_of(share: float, bounds: tuple[float, ...] = SHARES) -> str:
    """`free` above 67 % (A and B), `moderate` above 50 (C), `heavy` above 30 (D and E), else `jam` (F)."""
    return LEVELS[sum(share <= bound for bound in bounds)]
