"""What a dead letter says, and what of it may be sent again."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from edgeway.dead_letters import Place, Refused, asked_by, has_own_id, read_letter, renamed
from schemas import codec, headers
from schemas.messages import Failure, Request
from streams.delivery.dead_letters import dead_letter


class Original(NamedTuple):
    """A record that was set aside."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Any


class Stored(NamedTuple):
    """A record as the client gives it."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Any


def stored(
    topic: str = "requests", key: bytes | None = b"r-1", value: bytes = b"{", given: Any = ()
) -> Stored:
    record = Original(topic, 3, 17, 1_700_000_000_000, key, value, list(given))
    failure = Failure(code="handler_error", message="raised ValueError")
    made = dead_letter(record, failure, group="edgeway.router", attempt=3)
    return Stored(0, 5, 1_700_000_001_000, made.key, made.value, tuple(made.headers))


def test_a_letter_tells_where_it_came_from_and_keeps_what_it_was() -> None:
    letter = read_letter(stored(given=[("ce_id", b"r-1"), ("x", b"\xff")]))
    assert (letter.place, letter.topic, letter.origin) == (Place(0, 5), "requests", Place(3, 17))
    assert (letter.error, letter.message, letter.attempt) == ("handler_error", "raised ValueError", 3)
    assert letter.headers == (("ce_id", b"r-1"), ("x", b"\xff"))
    assert letter.value == b"{"
    told = letter.told()
    assert told["timestamp_ms"] == 1_700_000_000_000
    assert told["bytes"] == 1
    assert "value" not in told


def test_a_record_that_says_nothing_of_itself_is_a_letter_too() -> None:
    odd = [("edgeway_dead_letter_partition", b"-1"), ("edgeway_dead_letter_offset", b"9" * 99)]
    letter = read_letter(Stored(1, 2, 3, None, None, odd))
    assert (letter.topic, letter.origin, letter.error, letter.attempt) == (None, None, None, None)
    assert letter.told()["key"] is None
    with pytest.raises(Refused, match="no key"):
        asked_by(letter)


@pytest.mark.parametrize(
    ("topic", "key", "request_id"),
    [
        ("joins", b"acme/r-1", "acme/r-1"),
        ("local.nlp.intent", b"r-1/intent/local/0", "r-1"),
        ("cloud.nlp.intent", b"acme/r-1/a/cloud/1", "acme/r-1"),
    ],
)
def test_the_request_of_another_topic_s_record(topic: str, key: bytes, request_id: str) -> None:
    assert asked_by(read_letter(stored(topic, key))) == request_id


@pytest.mark.parametrize(
    ("topic", "key"), [("local.nlp.intent", b"nonsense"), ("feedback", b"r-1"), ("joins", b"")]
)
def test_a_record_that_names_no_request(topic: str, key: bytes) -> None:
    with pytest.raises(Refused, match="send the request again"):
        asked_by(read_letter(stored(topic, key)))


@pytest.mark.parametrize("fmt", ["json", "msgpack"])
def test_a_new_id_changes_nothing_else(fmt: Any) -> None:
    request = Request(
        id="r-1", task="intent", inputs={"text": "a"}, privacy="high", tenant="acme", max_cost=0.5
    )
    given = [*headers.build("request", "r-1", "me", fmt), ("x-own", b"1")]
    value, kept = renamed(codec.encode(request, fmt), given)
    found = codec.decode_request(value, codec.format_of(headers.read(kept).content_type, value))
    assert (found.id, found.privacy, found.tenant, found.max_cost) == (None, "high", "acme", 0.5)
    assert found.inputs == {"text": "a"}
    assert ("x-own", b"1") in kept
    assert "ce_id" not in dict(kept)
    assert has_own_id(codec.encode(request, fmt), given)
    assert not has_own_id(value, kept)


def test_what_is_no_request_gets_no_new_id() -> None:
    with pytest.raises(Refused, match="cannot be read"):
        renamed(b"{", [])
    assert has_own_id(b"{", [])
