"""Lines of recorded traffic: read in every form, written and read again, in order of time."""

from __future__ import annotations

import io
import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgeway.recorded import Attempted, Recorded, attempted, line_of, parse_feedback, parse_recorded, right_of
from edgeway.recorded_file import LONGEST, RecordedFile
from edgeway.request_lines import BadLine
from schemas import codec
from schemas.messages import Failure, Feedback, Partial, Request, Result, Timings
from tests.schemas.strategies import JSON_VALUES, structs


def read(said: Any) -> Recorded:
    found = parse_recorded(1, json.dumps(said).encode())
    assert isinstance(found, Recorded), found
    return found


def test_a_bare_request_is_a_record() -> None:
    found = read({"task": "intent", "text": "x", "privacy_level": "HIGH"})
    assert (found.request.inputs, found.request.privacy, found.at, found.result) == (
        {"text": "x"},
        "high",
        0,
        None,
    )


def test_an_input_named_request_makes_no_record() -> None:
    assert read({"task": "t", "request": {"a": 1}}).request.inputs == {"request": {"a": 1}}
    assert read({"request": "a text"}).request.inputs == {"request": "a text"}


def test_a_whole_record() -> None:
    found = read(
        {
            "request": {"task": "intent", "tenant": "t", "text": "x"},
            "at": 5,
            "result": {"id": "r", "status": "ok", "tenant": "t"},
            "feedback": {"id": "r", "verdict": "right"},
            "attempts": [{"step": "intent", "side": "local", "confidence": 0.5, "service_ms": 2}],
        }
    )
    assert found.result is not None
    assert (found.at, found.result.id, right_of(found.feedback)) == (5, "r", 1.0)
    assert found.attempts == (Attempted("intent", "local", 0.5, service_ms=2.0),)
    assert found.scoped == "\x1ft\x1fr"
    assert read({"request": {"task": "t"}, "result": None, "feedback": None}).result is None


@pytest.mark.parametrize(
    "said",
    [
        [],
        "text",
        {"request": {"task": 5}},
        {"request": {"task": "t"}, "at": -1},
        {"request": {"task": "t"}, "at": "now"},
        {"request": {"task": "t"}, "result": {"status": "ok"}},
        {"request": {"task": "t"}, "attempts": [{"step": "s", "side": "moon"}]},
        {"request": {"task": "t"}, "feedback": {"id": "r", "score": 2}},
    ],
)
def test_what_is_no_record_has_a_reason(said: Any) -> None:
    assert isinstance(parse_recorded(3, json.dumps(said).encode()), BadLine)
    assert isinstance(parse_recorded(3, b"{no json"), BadLine)


@pytest.mark.parametrize("line", [b"%s", b'{"a": %s}', b'{"request": {"task": "t"}, "result": %s}'])
def test_a_line_nested_too_deep_is_no_record(line: bytes) -> None:
    found = parse_recorded(3, line % (b"[" * 3000 + b"]" * 3000))
    assert isinstance(found, BadLine)
    assert "deep" in found.reason


def test_a_reason_does_not_quote_the_line() -> None:
    line = {"request": {"task": "t"}, "attempts": [{"step": "s", "side": "Ludmila"}], "at": 1}
    found = parse_recorded(1, json.dumps(line).encode())
    assert isinstance(found, BadLine)
    assert "Ludmila" not in found.reason


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    structs(Request, JSON_VALUES),
    st.none() | structs(Result, JSON_VALUES),
    st.none() | structs(Feedback, JSON_VALUES),
    st.integers(0, 2**40),
)
def test_what_is_written_is_read_again(
    request: Request, result: Result | None, feedback: Feedback | None, at: int
) -> None:
    try:
        raw = codec.encode(request, "json")
        asked = codec.decode_request(raw, "json")
        if result is not None:
            codec.decode(codec.encode(result, "json"), Result, "json")
        if feedback is not None:
            codec.decode(codec.encode(feedback, "json"), Feedback, "json")
    except codec.Malformed:
        return
    line = line_of(Recorded(1, raw, asked, at, result, feedback, (Attempted("s", "cloud", cost=0.5),)))
    found = parse_recorded(1, line.strip())
    assert isinstance(found, Recorded), found
    assert (found.raw, found.at, found.request, found.attempts[0].cost) == (raw, at, asked, 0.5)
    assert found.feedback == feedback
    if result is not None:
        assert found.result is not None
        assert found.result.output is None
        assert msgspec.structs.replace(result, output=None, claim=None) == found.result


def test_feedback() -> None:
    assert right_of(Feedback(id="r", verdict="wrong")) == 0.0
    assert right_of(Feedback(id="r", score=0.25)) == 0.25
    assert right_of(Feedback(id="r")) is None
    assert right_of(None) is None
    assert parse_feedback(1, b'{"id": "r", "verdict": "right"}') == Feedback(id="r", verdict="right")
    assert isinstance(parse_feedback(2, b'{"verdict": "right"}'), BadLine)


def test_partials_are_attempts_once_each() -> None:
    one = Partial(
        subtask="r/intent/local/0",
        deadline=5,
        confidence=0.4,
        cost=0.1,
        timings=Timings(queue_ms=1, service_ms=2),
        error=Failure(code="bad_input", message="no"),
    )
    other = msgspec.structs.replace(one, subtask="r/intent/cloud/1", error=None)
    kept = msgspec.structs.replace(one, subtask="r/a/cloud/0", cached=True)
    found = attempted([one, one, other, kept, msgspec.structs.replace(one, subtask="nonsense")])
    assert [(each.side, each.failed, each.took_ms) for each in found] == [
        ("local", True, 3),
        ("cloud", False, 3),
    ]


def lines(*times: int | None) -> bytes:
    said = [{"request": {"task": "t"}, **({} if at is None else {"at": at})} for at in times]
    return b"\n\n".join(json.dumps(one).encode() for one in said)


def test_a_file_is_read_as_it_lies_and_then_in_order_of_time() -> None:
    bad: list[BadLine] = []
    file = RecordedFile(
        io.BytesIO(b"\xef\xbb\xbf" + lines(30, None, 10) + b"\n{bad\n" + lines(20)), bad.append
    )
    assert [found.number for found in file.scan()] == [1, 3, 5, 7]
    assert [line.number for line in bad] == [6]
    assert [(found.number, found.at) for found in file.in_time()] == [(5, 10), (7, 20), (1, 30), (3, 30)]
    assert len(bad) == 1


def test_a_line_too_long_is_passed_over() -> None:
    bad: list[BadLine] = []
    long = b'{"request": {"task": "' + b"x" * (3 * LONGEST) + b'"}}\n'
    file = RecordedFile(io.BytesIO(long + lines(1)), bad.append)
    assert [found.number for found in file.scan()] == [2]
    assert [line.number for line in bad] == [1]
