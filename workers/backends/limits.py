"""The numbers of a card that make sense."""

from __future__ import annotations

import math

from schemas.cards import Card

WRONG = "max_batch is at least 1; times, costs and qps are at least 0, and have an end"


def is_sound(card: Card) -> bool:
    """Whether limits and prices are such. NaN is not: it would be null in the heartbeat, which nobody could
    read.
    """
    limits = (
        card.max_wait_ms,
        card.max_qps or 0,
        card.cost_per_call,
        card.cost_per_token,
        card.max_cost or 0,
    )
    return card.max_batch >= 1 and all(0 <= limit < math.inf for limit in limits)
