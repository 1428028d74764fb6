"""What a dead letter says of itself: the pure part of `edgeway dead-letters`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from schemas import codec, headers, ids
from schemas.errors import SchemaError
from schemas.topics import JOINS, REQUESTS, parse_capability_topic
from streams.delivery.dead_letters import PREFIX

Header = tuple[str, bytes]


class Place(NamedTuple):
    """Where a record lies in a topic."""

    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.partition}/{self.offset}"


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter. `topic`, `origin`, `error` and the like are None where it does not say; times in ms.

    `headers` are the original's, without those that were added when it was put aside.
    """

    place: Place
    at: int
    topic: str | None
    origin: Place | None
    came: int | None
    group: str | None
    error: str | None
    message: str | None
    attempt: int | None
    key: bytes | None
    headers: tuple[Header, ...]
    value: bytes

    def told(self) -> dict[str, Any]:
        """All of it but the payload, for JSON."""
        return {
            "place": str(self.place),
            "at_ms": self.at,
            "topic": self.topic,
            "partition": None if self.origin is None else self.origin.partition,
            "offset": None if self.origin is None else self.origin.offset,
            "timestamp_ms": self.came,
            "group": self.group,
            "error": self.error,
            "message": self.message,
            "attempt": self.attempt,
            "key": None if self.key is None else _text(self.key),
            "headers": {name: _text(value) for name, value in self.headers},
            "bytes": len(self.value),
        }


class Refused(Exception):
    """It cannot be replayed; the text says why, and what would do instead."""


def read_letter(record: Any) -> Letter:
    """The letter in a record of `dead-letters`, whatever of it is missing."""
    given = [(name, value or b"") for name, value in record.headers or ()]
    about = {name.removeprefix(PREFIX): value for name, value in given if name.startswith(PREFIX)}
    partition, offset = _number(about.get("partition")), _number(about.get("offset"))
    return Letter(
        place=Place(record.partition, record.offset),
        at=record.timestamp,
        topic=_or_none(about.get("topic")),
        origin=None if partition is None or offset is None else Place(partition, offset),
        came=_number(about.get("timestamp")),
        group=_or_none(about.get("group")),
        error=_or_none(about.get("error")),
        message=_or_none(about.get("message")),
        attempt=_number(about.get("attempt")),
        key=record.key,
        headers=tuple((name, value) for name, value in given if not name.startswith(PREFIX)),
        value=record.value or b"",
    )


def asked_by(letter: Letter) -> str:
    """The scoped id of the request that a letter of another topic than `requests` belongs to.

    Raises:
        Refused: it names none.
    """
    key = None if letter.key is None else _text(letter.key)
    try:
        if letter.topic is not None and letter.topic != JOINS:
            parse_capability_topic(letter.topic)
            return ids.parse_subtask_id(key or "").request
    except SchemaError as error:
        raise Refused(
            f"a record of {letter.topic} is no request, and its key names none; send the request again"
        ) from error
    if not key:
        raise Refused("it has no key that names its request; send the request again")
    return key


def renamed(value: bytes, given: Sequence[Header]) -> tuple[bytes, list[Header]]:
    """The request in `value` without its id, so that the router gives it a new one, and its headers.

    Raises:
        Refused: it is no request.
    """
    fmt = codec.format_of(headers.read(given).content_type, value)
    try:
        request = codec.decode_request(value, fmt)
        kept = [(name, text) for name, text in given if name not in ("ce_id", "content-type")]
        kind = "application/json" if fmt == "json" else "application/msgpack"
        changed = codec.encode(msgspec.structs.replace(request, id=None), fmt)
    except SchemaError as error:
        raise Refused(f"it cannot be read and so not be given a new id: {error}") from error
    return changed, [*kept, ("content-type", kind.encode())]


def has_own_id(value: bytes, given: Sequence[Header]) -> bool:
    """Whether the request in `value` has an id; True where that cannot be told."""
    try:
        request = codec.decode_request(value, codec.format_of(headers.read(given).content_type, value))
    except SchemaError:
        return True
    return request.id is not None


def is_request(letter: Letter) -> bool:
    return letter.topic == REQUESTS


def _number(value: bytes | None) -> int | None:
    text = (value or b"").decode("ascii", "replace")
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 20 else None


def _or_none(value: bytes | None) -> str | None:
    return None if value is None else _text(value)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
