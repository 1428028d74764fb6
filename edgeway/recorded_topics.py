"""Recorded traffic out of the topics: requests joined with their results, attempts and feedback."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from edgeway.audit import asked_of
from edgeway.client_records import read_result
from edgeway.recorded import Attempted, Recorded, attempted, line_of
from edgeway.tail import Tail
from schemas import codec, headers, ids
from schemas.errors import SchemaError
from schemas.messages import Feedback, JoinEvent, Partial, Result
from schemas.topics import FEEDBACK, JOINS, REQUESTS, RESULTS
from streams.settings import Settings

Progress = Callable[[int], None]


class _Answers:
    """What became of the requests, by scoped id; outputs are left out, so it is small."""

    def __init__(self) -> None:
        self.results: dict[str, Result] = {}
        self.feedback: dict[str, Feedback] = {}
        self.attempts: dict[str, dict[str, Attempted]] = {}

    def take(self, topic: str, record: Any) -> None:
        """One record of RESULTS, FEEDBACK or JOINS; what holds no such thing is passed over."""
        if topic == RESULTS:
            result = read_result(record)
            if result is not None:
                small = _small(result)
                self.results.setdefault(ids.scoped(result.tenant, result.id), small)
            return
        with suppress(SchemaError):
            # Anybody may write anything there; the roles have put what they cannot read into dead letters.
            self._take(topic, record.value or b"", record)

    def _take(self, topic: str, raw: bytes, record: Any) -> None:
        if topic == FEEDBACK:
            said = codec.decode(
                raw, Feedback, codec.format_of(headers.read(record.headers).content_type, raw)
            )
            self.feedback[ids.scoped(said.tenant, said.id)] = said
            return
        event = codec.decode(raw, JoinEvent)
        if isinstance(event, Partial):
            for one in attempted([event]):
                known = self.attempts.setdefault(ids.parse_subtask_id(event.subtask).request, {})
                known.setdefault(event.subtask, one)


async def record(settings: Settings, since: int, stream: IO[bytes], progress: Progress) -> int:
    """Write the requests since `since` (append time in ms) to `stream`, a line each; how many they are.

    A request that came twice is written once.

    Raises:
        KafkaUnreachable: no broker answers.
        TopicsWrong: a topic is missing.
    """
    answers = _Answers()
    for topic in (RESULTS, FEEDBACK, JOINS):
        async with Tail(settings, topic, since) as tail:
            async for records in tail.to_end():
                progress(len(records))
                for each in records:
                    answers.take(topic, each)
    seen: set[str] = set()
    async with Tail(settings, REQUESTS, since) as tail:
        async for records in tail.to_end():
            progress(len(records))
            for each in records:
                _write(each, answers, seen, stream)
    return len(seen)


def _write(record: Any, answers: _Answers, seen: set[str], stream: IO[bytes]) -> None:
    asked = asked_of(record)
    if asked is None or asked.digest is None or asked.scoped in seen:
        return
    try:
        raw = codec.encode(asked.request, "json")
    except SchemaError:
        # What JSON has no word for (NaN) could not be planned again from a file either.
        return
    seen.add(asked.scoped)
    attempts = tuple(answers.attempts.get(asked.scoped, {}).values())
    found = Recorded(
        len(seen),
        raw,
        asked.request,
        asked.accepted,
        answers.results.get(asked.scoped),
        answers.feedback.get(asked.scoped),
        attempts,
    )
    stream.write(line_of(found))


def _small(result: Result) -> Result:
    from msgspec.structs import replace

    return replace(result, output=None, claim=None)
