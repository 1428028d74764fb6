"""What a dead letter keeps and adds."""

from __future__ import annotations

from schemas.messages import Failure
from streams.delivery.dead_letters import MESSAGE_CHARS, PREFIX, dead_letter
from tests.helpers.delivery import LogRecord

FAILURE = Failure(code="malformed", message="no such field")


def letter(record: LogRecord, failure: Failure = FAILURE):
    return dead_letter(record, failure, group="edgeway.router", attempt=2)


def test_bytes_key_and_headers_are_kept() -> None:
    record = LogRecord("requests", 3, 17, 1234, b"key", b"\xff\x00", (("ce_id", b"r1"),))
    written = letter(record)
    headers = dict(written.headers)
    assert (written.topic, written.key, written.value) == ("dead-letters", b"key", b"\xff\x00")
    assert headers["ce_id"] == b"r1"
    assert {name: headers[PREFIX + name] for name in ("topic", "partition", "offset", "timestamp")} == {
        "topic": b"requests",
        "partition": b"3",
        "offset": b"17",
        "timestamp": b"1234",
    }
    assert headers[PREFIX + "error"] == b"malformed"
    assert headers[PREFIX + "group"] == b"edgeway.router"
    assert headers[PREFIX + "attempt"] == b"2"


def test_a_dead_letter_of_a_dead_letter_tells_of_the_last_death_only() -> None:
    first = letter(LogRecord("requests", 3, 17, value=b"x"))
    again = letter(LogRecord("dead-letters", 0, 5, value=b"x", headers=first.headers))
    names = [name for name, _ in again.headers]
    assert len(names) == len(set(names))
    assert dict(again.headers)[PREFIX + "topic"] == b"dead-letters"


def test_odd_messages_and_empty_records_can_be_written() -> None:
    written = letter(LogRecord("requests", 0, 0), Failure(code="malformed", message="\ud800" + "x" * 10_000))
    assert written.value == b""
    assert len(dict(written.headers)[PREFIX + "message"]) <= MESSAGE_CHARS * 4
