"""Ids that were seen before: the same record again, the same request again, or another under the same id."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Literal

from schemas.messages import MAX_DEADLINE_MS
from streams.router.admission import Admitted
from streams.stores import SeenStore, StoreUnavailable

log = logging.getLogger(__name__)

Standing = Literal["first", "repeat", "conflict"]

SEEN_TTL_S = 3 * MAX_DEADLINE_MS // 1000
"""How long an id is remembered: its longest deadline, and as much again for redelivery, twice."""
PATIENCE_S = 0.5


def mark_of(admitted: Admitted) -> str:
    """What is kept of an id: its content's digest and the place where it was first read."""
    return f"{admitted.digest}@{admitted.place}"


def standing(admitted: Admitted, seen: str | None) -> Standing:
    """`seen` is the mark of the first use of this id, None where this is the first."""
    if seen is None:
        return "first"
    digest, _, place = seen.partition("@")
    if digest != admitted.digest:
        return "conflict"
    # The same place is a redelivery: what it caused may not have been written.
    return "first" if place == admitted.place else "repeat"


async def standings(store: SeenStore | None, batch: Sequence[Admitted]) -> list[Standing]:
    """The standing of each request, by one call. Without the store all are first: the aggregator looks again.

    A derived id is of one place only and needs no look.
    """
    found: list[Standing] = ["first"] * len(batch)
    if store is None:
        return found
    named = [index for index, admitted in enumerate(batch) if admitted.named]
    if not named:
        return found
    entries = [(batch[index].scope, mark_of(batch[index])) for index in named]
    try:
        async with asyncio.timeout(PATIENCE_S):
            marks = await store.first_seen(entries, SEEN_TTL_S)
    except (StoreUnavailable, TimeoutError) as error:
        # The store itself tells of it, once and not for each batch.
        log.debug("repeated ids go unnoticed by the router, the store is away (%s)", type(error).__name__)
        return found
    for index, mark in zip(named, marks, strict=True):
        found[index] = standing(batch[index], mark)
    return found
