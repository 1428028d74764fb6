"""Money in whole millionths, so that sums are exact and a ceiling is a ceiling."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import lru_cache

MICRO = 1_000_000
MOST = 2**53 - 1
"""The largest amount in millionths: Redis' Lua counts in doubles, which are exact up to here (9 billion)."""


@lru_cache(maxsize=4096)
def cost_micros(cost: float) -> int:
    """A cost in millionths, rounded up. Digits beyond the ninth are the dust of floats: 0.1 + 0.2 is 0.3.

    Raises:
        ValueError: it is negative or no number.
    """
    if not 0.0 <= cost or math.isinf(cost):
        raise ValueError(f"a cost is a number from 0, not {cost}")
    clean = Decimal(repr(round(cost, 9)))
    return min(MOST, int((clean * MICRO).to_integral_value(ROUND_CEILING)))


@lru_cache(maxsize=4096)
def limit_micros(limit: float) -> int:
    """A ceiling in millionths, rounded down."""
    return min(MOST, int((Decimal(repr(limit)) * MICRO).to_integral_value(ROUND_FLOOR)))


def units(micros: int) -> float:
    """Millionths in the rules' currency."""
    return micros / MICRO
