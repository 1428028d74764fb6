"""Opening: where the lanes of an assignment start, by what the group committed and what the log still has."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass

from streams import metrics
from streams.delivery.driver import Source
from streams.delivery.errors import NotOwner, Unavailable
from streams.delivery.records import Place
from streams.delivery.suspects import Suspicion, parse, suspicion

log = logging.getLogger(__name__)

RETRY_S = 0.3


@dataclass(frozen=True, slots=True)
class Opening:
    """A lane starts at offset `start`; the log ends at `end`; `lost` records were deleted before they were
    done."""

    place: Place
    start: int
    end: int
    suspicion: Suspicion
    lost: int = 0


async def openings(source: Source, places: Iterable[Place], group: str, wait_s: float) -> list[Opening]:
    """The openings of `places`, in order; tried until Kafka answers."""
    places = sorted(places)
    while places:
        try:
            # One after the other: a cancelled gather would leave its other requests without an owner.
            committed = await source.committed(places, wait_s)
            ends = await source.ends(places, wait_s)
            first = await source.beginnings(places, wait_s)
            break
        except (Unavailable, NotOwner) as error:
            log.warning("%s: cannot read the committed offsets yet: %s", group, error)
            await asyncio.sleep(RETRY_S)
    return [_opening(place, *committed[place], first[place], ends[place]) for place in places]


def _opening(place: Place, offset: int, note: str, first: int, end: int) -> Opening:
    lost = 0
    start = max(offset, first)
    if 0 <= offset < first:
        lost = first - offset
        metrics.LOST_WORK.labels(place.topic).inc(lost)
        log.error(
            "%s/%d: %d records were deleted before they were done; retention is too short for the lag",
            *place,
            lost,
        )
    elif offset > end:
        # The topic was made anew, or its log was cut short. Whatever is there now was never handled.
        log.error("%s/%d: %d was committed, but the log ends at %d; reading it all", *place, offset, end)
        start, note = first, ""
    return Opening(place, start, end, suspicion(parse(note), start), lost)
