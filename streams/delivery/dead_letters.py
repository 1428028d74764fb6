"""Dead letters: the original bytes and key, untouched, and headers that say where they came from and what
was wrong."""

from __future__ import annotations

import time

from schemas.messages import Failure
from schemas.topics import DEAD_LETTERS
from streams.delivery.records import Header, Outgoing, Record

PREFIX = "edgeway_dead_letter_"
MESSAGE_CHARS = 500


def dead_letter(record: Record, failure: Failure, *, group: str, attempt: int) -> Outgoing:
    """The dead letter of `record`. The original's headers are kept; ours start with PREFIX.

    The message is the failure's, which never quotes the payload.
    """
    ours: list[Header] = [
        (f"{PREFIX}topic", record.topic.encode()),
        (f"{PREFIX}partition", str(record.partition).encode()),
        (f"{PREFIX}offset", str(record.offset).encode()),
        (f"{PREFIX}timestamp", str(record.timestamp).encode()),
        (f"{PREFIX}time", str(int(time.time() * 1000)).encode()),
        (f"{PREFIX}group", group.encode()),
        (f"{PREFIX}error", failure.code.encode()),
        (f"{PREFIX}message", failure.message[:MESSAGE_CHARS].encode("utf-8", "replace")),
        (f"{PREFIX}attempt", str(attempt).encode()),
    ]
    kept = [header for header in record.headers if not header[0].startswith(PREFIX)]
    return Outgoing(DEAD_LETTERS, record.key, record.value or b"", [*kept, *ours])
