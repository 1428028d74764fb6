"""Answers kept for equal requests: keys, entries, the stores that keep them, and single flight."""

from __future__ import annotations

from streams.cache.entries import (
    NOTHING,
    NOTHING_S,
    answer_entry,
    answer_of,
    kept_at,
    stamped,
    step_entry,
    step_of,
)
from streams.cache.flights import Flights, Landed
from streams.cache.keys import answer_key, is_of_answer, over_key, step_key
from streams.cache.landing import Landing
from streams.cache.memory import MemoryCache
from streams.cache.ports import MAX_ENTRY_BYTES, Cache
from streams.cache.redis import RedisCache

__all__ = [
    "MAX_ENTRY_BYTES",
    "NOTHING",
    "NOTHING_S",
    "Cache",
    "Flights",
    "Landed",
    "Landing",
    "MemoryCache",
    "RedisCache",
    "answer_entry",
    "answer_key",
    "answer_of",
    "is_of_answer",
    "kept_at",
    "over_key",
    "stamped",
    "step_entry",
    "step_key",
    "step_of",
]
