from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.codec import encode, peek_id
from schemas.messages import Request
from schemas.peek import peek_tenant

FORMATS = ("msgpack", "json")
HEADERS = [("ce_id", b"from-header")]
REQUEST = Request(
    inputs={"id": "inner", "deep": [{"id": "inner"}], "text": 'a "id": "quoted" {['}, id="outer"
)


def raw_of(content: dict, fmt: str) -> bytes:
    return (msgspec.json if fmt == "json" else msgspec.msgpack).encode(content)


@pytest.mark.parametrize("fmt", FORMATS)
class TestBody:
    def test_another_version(self, fmt):
        assert peek_id(raw_of({"v": 9, "id": "a", "new": {"id": "b"}}, fmt), []) == "a"

    def test_a_wrong_field(self, fmt):
        assert peek_id(raw_of({"deadline_ms": "soon", "id": "a"}, fmt), HEADERS) == "a"

    def test_oversized(self, fmt):
        raw = raw_of({"inputs": {"text": "x" * 2**21}, "id": "a"}, fmt)
        assert peek_id(raw_of({"id": "a", "inputs": "x" * 2**21}, fmt), []) == "a"
        assert peek_id(raw[: 2**20], HEADERS) == "from-header"

    def test_truncated_behind_it(self, fmt):
        raw = raw_of(
            {"inputs": {"id": "inner", "list": [{"id": "x"}, 'y"id":"z"']}, "id": "outer", "text": "t" * 50},
            fmt,
        )
        assert peek_id(raw[:-20], []) == "outer"

    def test_truncated_before_it(self, fmt):
        raw = raw_of({"inputs": {"id": "inner", "text": "t" * 50}, "id": "outer"}, fmt)
        assert peek_id(raw[:-20], []) is None

    def test_none(self, fmt):
        assert peek_id(raw_of({"task": "t", "inputs": {"id": "inner"}}, fmt), []) is None

    @pytest.mark.parametrize("wrong", [5, "", "x" * 129, None, ["a"]])
    def test_no_valid_id(self, fmt, wrong):
        assert peek_id(raw_of({"v": 9, "id": wrong}, fmt), []) is None
        assert peek_id(raw_of({"v": 9, "id": wrong}, fmt), HEADERS) == "from-header"

    @pytest.mark.parametrize("wrong", [5, None, True, ["a"], {"a": "b"}])
    def test_the_key_behind_a_wrong_id_is_none(self, fmt, wrong):
        assert peek_id(raw_of({"id": wrong, "task": "t", "text": "x"}, fmt), []) is None
        assert peek_id(raw_of({"id": wrong, "task": "t", "text": "x"}, fmt)[:-1], []) is None

    @given(data=st.data())
    @settings(max_examples=100, deadline=None)
    def test_never_raises_and_only_gives_valid_ids(self, fmt, data):
        raw = bytearray(encode(REQUEST, fmt))
        for place in data.draw(st.lists(st.integers(0, len(raw) - 1), max_size=3)):
            raw[place] = data.draw(st.integers(0, 255))
        found = peek_id(bytes(raw[: data.draw(st.integers(0, len(raw)))]), [])
        assert found is None or 1 <= len(found.encode()) <= 128


@given(
    st.binary(max_size=300),
    st.lists(st.tuples(st.sampled_from(["ce_id", "content-type", "x"]), st.none() | st.binary())),
)
@settings(max_examples=200, deadline=None)
def test_any_bytes(raw, headers):
    found = peek_id(raw, headers)
    assert found is None or 1 <= len(found.encode()) <= 128


def test_without_headers():
    assert peek_id(b"", None) is None


@pytest.mark.parametrize(
    "raw", [b"\xdf" + b"\xff" * 4 + b"\x90" * 2**20, b"{" * 2**20, b'{"a":"' + b'\\"' * 2**19]
)
def test_bombs_take_bounded_work(raw):
    assert peek_id(raw, []) is None


@pytest.mark.parametrize("fmt", FORMATS)
class TestTenant:
    def test_in_a_head_that_can_be_read(self, fmt):
        assert peek_tenant(raw_of({"v": 9, "id": "a", "tenant": "red"}, fmt), []) == "red"

    @pytest.mark.parametrize("wrong", [5, "", "no space", "x" * 65, "red\n", None, ["red"]])
    def test_no_valid_one(self, fmt, wrong):
        assert peek_tenant(raw_of({"v": 9, "id": "a", "tenant": wrong}, fmt), []) is None

    def test_a_head_that_cannot_be_read(self, fmt):
        assert peek_tenant(raw_of({"id": "a", "tenant": "red", "text": "t" * 50}, fmt)[:-20], []) is None
        assert peek_tenant(raw_of({"id": "a", "tenant": "red", "text": "x" * 2**21}, fmt), []) is None
