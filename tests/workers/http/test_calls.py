"""Requests to calls: what is read, what is refused and how, and that nothing of a payload comes back."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.bounds import DEFAULT_DEADLINE_MS
from schemas.limits import MAX_RECORD_BYTES
from workers.backends import Row
from workers.http.calls import check_length, kind_of, read_call
from workers.http.problems import Refused

SECRET = "4111-secret"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def read(body: Any, kind: str = "json", **headers: str) -> Any:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read_call(kind, raw, {name.replace("_", "-"): value for name, value in headers.items()})


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (None, "json"),
        ("application/json", "json"),
        ("Application/JSON; charset=utf-8", "json"),
        ("application/vnd.company+json", "json"),
        ("application/msgpack", "msgpack"),
        ("application/x-msgpack", "msgpack"),
        ("text/plain", "text"),
        ('text/plain; charset="UTF-8"', "text"),
        ("image/jpeg", "image"),
    ],
)
def test_content_types(given: str | None, kind: str) -> None:
    assert kind_of(given) == kind


@pytest.mark.parametrize(
    "given", ["application/x-www-form-urlencoded", "text/html", "text/plain; charset=latin-1", "multipart/x"]
)
def test_content_types_that_are_not_read(given: str) -> None:
    with pytest.raises(Refused) as caught:
        kind_of(given)
    assert caught.value.status == 415


def test_the_keys_of_a_body_are_the_inputs() -> None:
    call = read({"text": "a", "params": {"x": 1}, "id": "mine"})
    assert call.row == Row({"text": "a", "params": {"x": 1}, "id": "mine"}, {})
    assert (call.id, call.deadline_ms, call.max_batch, call.wire) == (None, DEFAULT_DEADLINE_MS, None, "json")


def test_inputs_may_stand_beside_params() -> None:
    call = read({"inputs": {"text": "a"}, "params": {"x": 1}, "deadline_ms": 50, "id": "k", "max_batch": 2})
    assert call.row == Row({"text": "a"}, {"x": 1})
    assert (call.deadline_ms, call.id, call.max_batch) == (50, "k", 2)
    # An input of that name, which is no map, is one like any other.
    assert read({"inputs": [1, 2]}).row.inputs == {"inputs": [1, 2]}


def test_text_and_images_are_one_input() -> None:
    assert read("é".encode(), "text").row.inputs == {"text": "é"}
    assert read(b"\xff\xd8", "image").row.inputs == {"image": b"\xff\xd8"}


def test_headers_say_the_key_and_the_deadline() -> None:
    call = read({}, idempotency_key='"abc"', edgeway_deadline_ms="250", accept="application/msgpack")
    assert (call.id, call.deadline_ms, call.wire) == ("abc", 250, "msgpack")
    both = {"inputs": {}, "id": "abc", "deadline_ms": 100}
    assert read(both, idempotency_key="abc", edgeway_deadline_ms="250").deadline_ms == 100


def test_a_key_is_the_same_in_the_header_and_in_the_body() -> None:
    header = "b\u00fcro-\u7532".encode().decode("latin-1")
    assert read({"inputs": {}, "id": "b\u00fcro-\u7532"}, idempotency_key=header).id == "b\u00fcro-\u7532"
    assert read({}, idempotency_key="caf\xe9").id == "caf\u00e9", "what is no UTF-8 stays as it was read"


def test_msgpack_is_answered_in_msgpack_unless_json_is_wanted() -> None:
    body = msgspec.msgpack.encode({"image": b"\x00"})
    assert read(body, "msgpack").wire == "msgpack"
    assert read(body, "msgpack", accept="application/json").wire == "json"
    assert read(body, "msgpack").row.inputs == {"image": b"\x00"}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "malformed"),
        (b"  ", "malformed"),
        (b"{", "malformed"),
        (f'{{"text": "{SECRET}'.encode(), "malformed"),
        (f'["{SECRET}"]'.encode(), "malformed"),
        (b"12", "malformed"),
        (b'{"text": 1e999}', "malformed"),
        (b'{"n": 123456789012345678901234567890}', "malformed"),
        (b'{"text": "\\ud800"}', "malformed"),
        (b"\xff\xfe{}", "malformed"),
        (b'{"a":' * 50 + b"1" + b"}" * 50, "malformed"),
        (b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}", "malformed"),
        (b'{"a": "' + b"x" * MAX_RECORD_BYTES + b'"}', "too_large"),
        ({"inputs": {"text": "a"}, "text": SECRET}, "malformed"),
        ({"inputs": {}, "deadline_ms": 0}, "malformed"),
        ({"inputs": {}, "deadline_ms": SECRET}, "malformed"),
        ({"inputs": {}, "max_batch": 0}, "malformed"),
        ({"inputs": {}, "id": ""}, "malformed"),
        ({"inputs": {}, "id": "x" * 129}, "malformed"),
        ({"inputs": {}, "id": "a\nb"}, "malformed"),
        ({"inputs": {}, "params": SECRET}, "malformed"),
    ],
)
def test_bodies_that_are_refused(body: Any, code: str) -> None:
    with pytest.raises(Refused) as caught:
        read(body)
    assert caught.value.code == code
    assert caught.value.status in (400, 413)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'{"text": 1e999}', "a number beyond 64 bits"),
        (b'{"n": 123456789012345678901234567890}', "a number beyond 64 bits"),
        (b'{"text": "\\ud800"}', "half a surrogate pair"),
        (b'{"text": "a', "ends too early"),
        (b'{"text": a}', "at byte 9"),
        ('{"text": "a"}'.encode("utf-8-sig"), "a byte order mark"),
        ('{"text": "a"}'.encode("utf-16"), "a byte order mark"),
    ],
)
def test_what_is_wrong_with_a_body_is_told(body: bytes, told: str) -> None:
    with pytest.raises(Refused, match=told):
        read(body)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("msgpack", msgspec.msgpack.encode({"x": float("nan")})),
        ("msgpack", b"\xc1"),
        ("msgpack", msgspec.msgpack.encode({1: 2})),
        ("msgpack", msgspec.msgpack.encode({"x": msgspec.msgpack.Ext(5, b"ab")})),
        ("text", b"\xff"),
    ],
)
def test_odd_values_in_other_types_are_refused(kind: str, body: bytes) -> None:
    with pytest.raises(Refused) as caught:
        read(body, kind)
    assert caught.value.status == 400


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "600001", "soon", "", "9" * 40])
def test_deadlines_that_make_no_sense(text: str) -> None:
    with pytest.raises(Refused, match="whole number of ms"):
        read({}, edgeway_deadline_ms=text)


def test_two_keys_that_differ() -> None:
    with pytest.raises(Refused, match="differ"):
        read({"inputs": {}, "id": "a"}, idempotency_key="b")


def test_a_length_is_refused_before_anything_is_read() -> None:
    check_length(None)
    check_length(str(MAX_RECORD_BYTES))
    for text, status in ((str(MAX_RECORD_BYTES + 1), 413), ("9" * 30, 413), ("-1", 400), ("x", 400)):
        with pytest.raises(Refused) as caught:
            check_length(text)
        assert caught.value.status == status


@settings(deadline=None)
@given(st.dictionaries(st.text().filter(lambda name: name != "inputs"), VALUES, max_size=4))
def test_what_json_says_is_what_is_asked(inputs: dict[str, Any]) -> None:
    raw = msgspec.json.encode(inputs)
    assert read(raw).row.inputs == msgspec.json.decode(raw)
    assert read(msgspec.json.encode({"inputs": inputs})).row == read(raw).row


@settings(deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["json", "msgpack", "text"]))
def test_any_bytes_are_read_or_refused(raw: bytes, kind: str) -> None:
    try:
        call = read(raw, kind)
    except Refused as error:
        assert error.status in (400, 413)  # noqa: PT017 - either outcome is right
    else:
        msgspec.msgpack.encode(call.row.inputs)
