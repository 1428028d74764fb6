"""The shell of `edgeway dead-letters`: reads the topic without a group, sends requests again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from typing import Any, NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from edgeway import kafka
from edgeway.audit import asked_of
from edgeway.dead_letters import (
    Header,
    Letter,
    Place,
    Refused,
    asked_by,
    has_own_id,
    is_request,
    read_letter,
    renamed,
)
from edgeway.tail import Tail
from schemas import ids
from schemas.bounds import MAX_DEADLINE_MS
from schemas.topics import DEAD_LETTERS, REQUESTS, partition_for
from streams.settings import Settings

SEND_S = 15.0


class Again(NamedTuple):
    """A record for `requests`. `own_id`: it has an id, else the router derives one of its new place."""

    key: bytes | None
    value: bytes
    headers: list[Header]
    own_id: bool


class Replayed(NamedTuple):
    """What became of one letter: the id and place under which it runs, or why it does not."""

    letter: Letter
    id: str | None = None
    place: Place | None = None
    refused: str | None = None


async def letters(
    settings: Settings, since: int, progress: Callable[[int], None] | None = None
) -> AsyncIterator[Letter]:
    """The dead letters of the time since `since` (ms).

    Raises:
        KafkaUnreachable: no broker answers.
        TopicsWrong: there is no such topic.
    """
    async with Tail(settings, DEAD_LETTERS, since) as tail:
        async for records in tail.to_end():
            if progress is not None:
                progress(len(records))
            for record in records:
                yield read_letter(record)


async def at(settings: Settings, places: Collection[Place]) -> dict[Place, Letter]:
    """The letters at `places`, as far as they are there.

    Raises: as `letters`.
    """
    wanted = set(places)
    return {letter.place: letter async for letter in letters(settings, 0) if letter.place in wanted}


async def rehearse(settings: Settings, some: Sequence[Letter], *, new_ids: bool) -> list[Replayed]:
    """What `replay` would refuse of `some`, in their order; the others have neither place nor refusal.

    Raises: as `letters`.
    """
    origins = await _origins(settings, some)
    done = []
    for letter in some:
        try:
            _again(letter, origins, new_ids)
            done.append(Replayed(letter))
        except Refused as error:
            done.append(Replayed(letter, refused=str(error)))
    return done


async def replay(settings: Settings, some: Sequence[Letter], *, new_ids: bool) -> list[Replayed]:
    """Send the requests of `some` to `requests` once more, in their order. Nothing is ever sent to another
    topic: a record of `joins` or of a capability stands for the request that it came from.

    Raises: as `letters`.
    """
    origins = await _origins(settings, some)
    counts = await kafka.partition_counts(settings, REQUESTS)
    done = []
    async with kafka.producer(settings) as producer:
        for letter in some:
            try:
                again = _again(letter, origins, new_ids)
                done.append(await _sent(producer, counts[REQUESTS], letter, again))
            except Refused as error:
                done.append(Replayed(letter, refused=str(error)))
    return done


def _again(letter: Letter, origins: dict[str, Any], new_ids: bool) -> Again:
    if is_request(letter):
        key, value, given = letter.key, letter.value, list(letter.headers)
    else:
        record = origins.get(asked_by(letter))
        if record is None:
            raise Refused(
                f"a record of {letter.topic or 'an unknown topic'} is not sent again: that would pass by the"
                f" router, its privacy verdict and its budget; and its request, {asked_by(letter)}, is no"
                " longer in the log: send the request again"
            )
        key, value = record.key, record.value or b""
        given = [(name, text or b"") for name, text in record.headers or ()]
    if new_ids:
        value, given = renamed(value, given)
    return Again(key, value, given, has_own_id(value, given))


async def _sent(producer: AIOKafkaProducer, partitions: int, letter: Letter, again: Again) -> Replayed:
    partition = None if again.key is None else partition_for(again.key, partitions)
    try:
        async with asyncio.timeout(SEND_S):
            told = await producer.send_and_wait(
                REQUESTS, again.value, again.key, partition=partition, headers=again.headers
            )
    except (KafkaError, TimeoutError) as error:
        why = str(error) or type(error).__name__
        raise Refused(f"not acknowledged by the broker, which may have it all the same: {why}") from error
    place = Place(told.partition, told.offset)
    derived = None if again.own_id else ids.derived(REQUESTS, told.partition, told.offset, told.timestamp)
    return Replayed(letter, derived, place)


async def _origins(settings: Settings, some: Sequence[Letter]) -> dict[str, Any]:
    """The records of `requests` that letters of other topics came from, by scoped id."""
    wanted: dict[str, Any] = {}
    since = int(time.time() * 1000)
    for letter in some:
        if not is_request(letter):
            try:
                wanted[asked_by(letter)] = None
            except Refused:
                continue  # told where it is its turn
            since = min(since, (letter.at if letter.came is None else letter.came) - 2 * MAX_DEADLINE_MS)
    if not wanted:
        return {}
    async with Tail(settings, REQUESTS, max(0, since)) as tail:
        async for records in tail.to_end():
            for record in records:
                asked = asked_of(record)
                if asked is not None and wanted.get(asked.scoped, record) is None:
                    wanted[asked.scoped] = record
    return {scoped: record for scoped, record in wanted.items() if record is not None}
