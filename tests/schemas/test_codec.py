from __future__ import annotations

import json
import math
import tracemalloc
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.cards import Heartbeat
from schemas.codec import MAX_DEPTH, MAX_RECORD_BYTES, decode, decode_request, digest_of, encode, format_of
from schemas.errors import Malformed, TooLarge, UnsupportedVersion
from schemas.generate import KINDS
from schemas.messages import VERSION, JoinEvent, Partial, Plan, Request, RequestInfo, Result, Subtask
from tests.schemas.examples import EXAMPLES
from tests.schemas.strategies import JSON_VALUES, VALUES, structs

FORMATS = ("msgpack", "json")
BY_NAME = {kind.__name__: kind for kind in KINDS}


def nested(depth: int) -> list:
    value: list = []
    for _ in range(depth - 1):
        value = [value]
    return value


class TestRoundTrip:
    @pytest.mark.parametrize("name", BY_NAME)
    @given(data=st.data())
    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def test_msgpack(self, name, data):
        message = data.draw(structs(BY_NAME[name], VALUES))
        assert decode(encode(message), BY_NAME[name]) == message

    @pytest.mark.parametrize("name", BY_NAME)
    @given(data=st.data())
    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def test_json(self, name, data):
        message = data.draw(structs(BY_NAME[name], JSON_VALUES))
        assert decode(encode(message, "json"), BY_NAME[name]) == message

    @given(structs(Request, VALUES))
    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def test_request_through_its_own_door(self, request_):
        try:
            read = decode_request(encode(request_))
        except Malformed:
            assert request_.id is not None
            assert not 1 <= len(request_.id.encode()) <= 128
        else:
            assert read == request_

    def test_bytes_are_base64_in_json(self):
        assert json.loads(encode(Request(inputs={"pixels": b"\x00\x01"}), "json"))["inputs"] == {
            "pixels": "AAE="
        }

    def test_floats_in_binary_and_chinese_text_are_valid(self):
        inputs = {"pixels": b"\x90\x80\xdd\xff\xff\xff\xff" * 100_000, "text": "生成财报分析" * 10_000}
        assert decode_request(encode(Request(inputs=inputs))).inputs == inputs

    def test_a_large_list_of_numbers_is_valid(self):
        inputs = {"embedding": [number / 7 for number in range(100_000)]}
        assert decode_request(encode(Request(inputs=inputs))).inputs == inputs

    def test_long_digits_are_no_long_integers(self):
        inputs = {
            "text": "12345678901234567890123" * 10_000,
            "pi": [3.14159265358979312345678],
            "most": 2**64 - 1,
            "least": -(2**63),
        }
        assert decode_request(json.dumps({"inputs": inputs}).encode()).inputs == inputs

    def test_nan_in_a_msgpack_payload_is_left_to_the_model(self):
        raw = encode(Subtask(id="r/s/local/0", capability="c", deadline=1, inputs={"row": [math.nan, 1.0]}))
        assert math.isnan(decode(raw, Subtask).inputs["row"][0])


class TestAnyBytes:
    """Whatever the bytes, the answer is a message or Malformed."""

    @staticmethod
    def read(raw: bytes) -> None:
        for kind in (JoinEvent, Request, Subtask, Result, Heartbeat):
            for fmt in (None, *FORMATS):
                try:
                    decode(raw, kind, fmt)
                except Malformed:
                    continue
        for fmt in (None, *FORMATS):
            try:
                assert decode_request(raw, fmt).v in (VERSION - 1, VERSION)
            except Malformed:
                continue

    @given(st.binary(max_size=200))
    @settings(max_examples=80, deadline=None)
    def test_random(self, raw):
        self.read(raw)

    @given(st.sampled_from(sorted(EXAMPLES)), st.sampled_from(FORMATS), st.data())
    @settings(max_examples=200, deadline=None)
    def test_mutated(self, name, fmt, data):
        raw = bytearray(encode(EXAMPLES[name], fmt))
        places = st.integers(0, len(raw) - 1)
        for place, byte in data.draw(
            st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=4)
        ):
            raw[place] = byte
        self.read(bytes(raw))

    @given(st.sampled_from(sorted(EXAMPLES)), st.sampled_from(FORMATS), st.data())
    @settings(max_examples=60, deadline=None)
    def test_truncated_is_malformed(self, name, fmt, data):
        message = EXAMPLES[name]
        raw = encode(message, fmt)[: data.draw(st.integers(0, len(encode(message, fmt)) - 1))]
        with pytest.raises(Malformed):
            decode(raw, type(message), fmt)

    @given(
        st.recursive(
            st.none() | st.integers() | st.floats() | st.text(),
            lambda v: st.lists(v) | st.dictionaries(st.text(), v),
        )
    )
    @settings(max_examples=150, deadline=None)
    def test_any_json(self, value):
        self.read(json.dumps(value).encode())

    @pytest.mark.parametrize(
        "raw",
        [
            b"",
            b"\xc1",
            b"null",
            b"[]",
            b"\x80trailing",
            b'{"id": "\\ud800"}',
            b'{"id": "\xff"}',
            b'{"inputs": {"n": 1e999}}',
            b'{"inputs": {"n": NaN}}',
            b'{"inputs": {"n": 18446744073709551616}}',
            b'{"inputs": {"n": -9223372036854775809}}',
            b'{"inputs": {"n": ' + b"1" * 100_000 + b"}}",
            b'{"inputs": {"t": "' + b"x" * 100_000 + b'", "n": [[{"a": -9223372036854775809}]]}}',
            b'{"v": "1"}',
            b'{"v": true}',
            b'{"v": 1.5}',
            b"\x81\xa6inputs\x81\x01\x02",
            b"\x81\xa6inputs\x81\xa1a\x81\x01\x02",
            b"\x81\xa6inputs\x81\xa1a\x81\x90\x02",
            b"\x81\xa6inputs\x81\xa1a\xd4\x01\x01",
            b"\x81\xa6inputs\x81\xa1a\xd6\xff\x00\x00\x00\x01",
            b"\x81\xa6inputs\x81\xa1a\x91\xd6\xff\x00\x00\x00\x01",
            b"\x81\x01\x02",
            b"\x81\xa2id\xa2\xff\xfe",
        ],
    )
    def test_hand_picked_are_malformed(self, raw):
        with pytest.raises(Malformed) as caught:
            decode_request(raw)
        assert not isinstance(caught.value, UnsupportedVersion)

    def test_errors_do_not_quote_the_payload(self):
        for raw in (
            b'{"privacy": "secret-word"}',
            b'{"type": "secret-word"}',
            b'{"inputs": {"secret-word": 1e999}}',
        ):
            with pytest.raises(Malformed) as caught:
                decode_request(raw)
            assert "secret-word" not in str(caught.value)


def bomb(unit: bytes) -> bytes:
    """A request whose inputs are a msgpack list of as many `unit` as fit."""
    head = b"\x81\xa6inputs\x81\xa1a\xdd"
    count = (MAX_RECORD_BYTES - len(head) - 4) // len(unit)
    return head + count.to_bytes(4, "big") + unit * count


PACKED = [
    b"\x90",
    b"\x80",
    b"\x81\xa0\xe0",
    b"\xe0",
    b"\xa1a",
    b"\xa2ab",
    b"\xa0",
    b"\xcd\x01\x01",
    b"\xca\x00\x00\x00\x01",
]
PACKED += [
    b"\xcb" + b"\x01" * 8,
    b"\x01",
    b"\x91\xe0",
    b"\xd0\x80",
    b"\xc4\x02ab",
    b"\xa4\xf0\x9f\x98\x80",
    b"\x91\x91\x90",
]
PACKED += [b"\xdc\x00\x01\xe0", b"\xde\x00\x01\xa1a\xe0", b"\x82\xa1a\xe0\xa1b\xe0"]
TEXTS = [
    b"[],",
    b"{},",
    b"-9,",
    b'"",',
    b'"a",',
    b"999,",
    b"1e1,",
    b'{"":1},',
    b"[9],",
    b'{"a":-9,"b":-9},',
    b"[[[]]],",
]
TEXTS += [b'"\xf0\x9f\x98\x80",', b'"\\u00e9",']


class TestMemory:
    """8 MB for any record: the limit of the design is a few MB."""

    LIMIT = 8 * 2**20

    def peak(self, raw: bytes, kind: type = Request) -> int:
        tracemalloc.start()
        try:
            decode_request(raw) if kind is Request else decode(raw, kind)
        except Malformed:
            pass
        finally:
            worst = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        return worst

    @pytest.mark.parametrize("unit", PACKED, ids=bytes.hex)
    @pytest.mark.parametrize("share", [1.0, 0.12, 0.06])
    def test_msgpack(self, unit, share):
        whole = bomb(unit)
        count = int((len(whole) - 20) * share) // len(unit)
        raw = b"\x81\xa6inputs\x81\xa1a\xdd" + count.to_bytes(4, "big") + unit * count
        assert self.peak(raw) < self.LIMIT

    @pytest.mark.parametrize("unit", TEXTS, ids=repr)
    @pytest.mark.parametrize("share", [1.0, 0.18])
    def test_json(self, unit, share):
        raw = b'{"inputs":{"a":[' + unit * int(MAX_RECORD_BYTES * share / len(unit) - 20) + b"0]}}"
        assert self.peak(raw) < self.LIMIT

    @pytest.mark.parametrize("unit", [b"\x90", b"\x81\xa0\xe0", b"\xe0"], ids=bytes.hex)
    def test_own_records(self, unit):
        head = encode(Subtask(id="r/s/local/0", capability="c", deadline=1, inputs={"a": []}))[:-1] + b"\xdd"
        for size in (MAX_RECORD_BYTES - 100, 64 * 2**10 - 100):
            count = size // len(unit)
            assert self.peak(head + count.to_bytes(4, "big") + unit * count, Subtask) < self.LIMIT

    @pytest.mark.parametrize("share", [1.0, 0.06])
    def test_maps_of_many_keys(self, share):
        count = int(MAX_RECORD_BYTES * share) // 6 - 10
        pairs = b"".join(
            b"\xa4" + index.to_bytes(4, "big").translate(KEYS) + b"\xe0" for index in range(count)
        )
        for head in (b"\x81\xa6inputs\xdf", b"\xdf"):
            assert self.peak(head + count.to_bytes(4, "big") + pairs) < self.LIMIT

    def test_one_emoji_widens_a_long_text(self):
        text = "a" * (MAX_RECORD_BYTES - 100) + "😀"
        assert self.peak(encode(Request(inputs={"a": text}))) < self.LIMIT
        assert self.peak(encode(Request(inputs={"a": text}), "json")) < self.LIMIT

    def test_long_numbers_beside_long_text(self):
        digits = b'","b":[' + b"12345678901234567890123," * 20_000 + b"1]}}"
        raw = b'{"inputs":{"a":"\xf0\x9f\x98\x80' + b"a" * (MAX_RECORD_BYTES - 60 - len(digits)) + digits
        assert self.peak(raw, Subtask) < self.LIMIT

    def test_lists_that_promise_more_than_there_is(self):
        for raw in (
            b"\xdd\xff\xff\xff\xff",
            b"\xdf\xff\xff\xff\xff",
            b"\x81\xa6inputs\x81\xa1a\xdd\xff\xff\xff\xff" + b"\x90" * 1000,
        ):
            assert self.peak(raw, Plan) < 2**20
        assert (
            self.peak(b"\x81\xa6inputs\x81\xa1a\xdd\xff\xff\xff\xff" + b"\x00" * 500_000, Plan) < self.LIMIT
        )

    def test_unterminated_text_is_refused_in_time(self):
        raw = b'{"a":"' + b'\\"' * 400_000
        with pytest.raises(Malformed):
            decode_request(raw)

    @given(st.lists(st.sampled_from(PACKED), min_size=1, max_size=6), st.floats(0.04, 1))
    @settings(max_examples=15, deadline=None)
    def test_mixtures(self, units, share):
        raw = bomb(b"".join(units))
        assert self.peak(raw[: int(len(raw) * share)]) < self.LIMIT


KEYS = bytes((index % 64) + 33 for index in range(256))


class TestLimits:
    def test_size_is_checked_first(self):
        for fmt in FORMATS:
            with pytest.raises(TooLarge):
                decode(b"\xc1" * (MAX_RECORD_BYTES + 1), Plan, fmt)
            with pytest.raises(TooLarge):
                decode_request(b"\xc1" * (MAX_RECORD_BYTES + 1), fmt)

    def test_what_nobody_would_read_is_not_written(self):
        with pytest.raises(TooLarge):
            encode(Partial(subtask="r/s/local/0", deadline=1, output="x" * MAX_RECORD_BYTES))

    @pytest.mark.parametrize("fmt", FORMATS)
    def test_depth(self, fmt):
        # `inputs` is the first level.
        fits = msgspec_raw({"inputs": {"a": nested(MAX_DEPTH - 1)}}, fmt)
        assert decode_request(fits, fmt).inputs == {"a": nested(MAX_DEPTH - 1)}
        with pytest.raises(Malformed, match="deeper"):
            decode_request(msgspec_raw({"inputs": {"a": nested(MAX_DEPTH)}}, fmt), fmt)

    def test_an_accepted_value_stays_readable_in_later_records(self):
        inputs = {"a": nested(MAX_DEPTH - 1)}
        wrapped = {"step": {"name": inputs}}
        assert (
            decode(
                encode(Subtask(id="r/s/local/0", capability="c", deadline=1, inputs=wrapped)), Subtask
            ).inputs
            == wrapped
        )
        assert decode(encode(Result(id="r", status="ok", output=wrapped)), Result).output == wrapped

    @pytest.mark.parametrize("raw", [b"\x91" * 100_000, b'{"a":' * 30_000, b"[" * 300_000])
    def test_very_deep(self, raw):
        for fmt in FORMATS:
            with pytest.raises(Malformed):
                decode_request(raw, fmt)

    def test_shared_and_circular_values_are_not_written(self):
        shared: list = [0]
        for _ in range(20):
            shared = [shared] * 10
        circular: list = []
        circular.append(circular)
        for output in (shared, circular):
            with pytest.raises(Malformed):
                encode(Partial(subtask="r/s/local/0", deadline=1, output=output))


def msgspec_raw(value: object, fmt: str) -> bytes:
    return (msgspec.json if fmt == "json" else msgspec.msgpack).encode(value)


class TestWriting:
    @pytest.mark.parametrize("fmt", ["msgpack", "json"])
    @pytest.mark.parametrize("count", [1_000, 5_000, 10_000, 40_000])
    def test_what_is_written_can_be_read(self, fmt, count):
        rows = [{"text": "1", "start": n, "value": 1.0} for n in range(count)]
        message = Partial(subtask="r1/t/local/1", deadline=1, output=rows)
        try:
            raw = encode(message, fmt)
        except TooLarge:
            assert count > 5_000
        else:
            assert decode(raw, Partial).output == rows

    @pytest.mark.parametrize("fmt", FORMATS)
    @pytest.mark.parametrize(
        "value",
        [
            datetime(2025, 1, 1, tzinfo=UTC),
            {1, 2},
            object(),
            {1: 2},
            2**64,
            "\ud800",
            [1, 2, {"a": 1j}],
            msgspec.UNSET,
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_refuses_what_no_reader_could_decode(self, fmt, value):
        for output in (value, [value], {"a": {"b": value}}, [1.0] * 20 + [value]):
            with pytest.raises(Malformed):
                encode(Partial(subtask="r/s/local/0", deadline=1, output=output), fmt)

    @pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
    def test_refuses_nan_in_json(self, number):
        for output in (number, [number], {"a": [{"b": number}]}, [1.0] * 30 + [number]):
            with pytest.raises(Malformed, match="NaN"):
                encode(Partial(subtask="r/s/local/0", deadline=1, output=output), "json")
        with pytest.raises(Malformed, match="NaN"):
            encode(Partial(subtask="r/s/local/0", deadline=1, usage={"tokens": number}), "json")

    def test_null_is_no_nan(self):
        raw = encode(Partial(subtask="r/s/local/0", deadline=1, output=[None, "null"]), "json")
        assert decode(raw, Partial).output == [None, "null"]

    @pytest.mark.parametrize(
        "kind", [Partial(subtask="r/s/local/0", deadline=1), Result(id="r", status="ok")], ids=["p", "r"]
    )
    @pytest.mark.parametrize(
        "wrong",
        [
            {"confidence": math.nan},
            {"confidence": 1.01},
            {"confidence": True},
            {"cost": -1.0},
            {"cost": math.inf},
        ],
    )
    def test_refuses_figures_out_of_bounds(self, kind, wrong):
        message = msgspec.structs.replace(kind, **wrong)
        with pytest.raises(Malformed, match=next(iter(wrong))):
            encode(message)
        with pytest.raises(Malformed):
            decode(msgspec.msgpack.encode(message), type(message))


class TestVersions:
    @pytest.mark.parametrize("fmt", FORMATS)
    @pytest.mark.parametrize("version", [VERSION + 1, 99, -1])
    def test_others_are_unsupported(self, fmt, version):
        raw = msgspec_raw({"v": version, "type": "plan", "id": "x"}, fmt)
        for read in (lambda: decode(raw, Plan, fmt), lambda: decode(raw, JoinEvent, fmt)):
            with pytest.raises(UnsupportedVersion, match=str(version)):
                read()

    def test_the_shape_of_a_later_version_does_not_matter(self):
        for content in (
            {"v": 2, "id": [1]},
            {"v": 2, "type": "ask"},
            {"v": 2, "inputs": 5, "new": {}},
            {"v": 2},
        ):
            for fmt in FORMATS:
                with pytest.raises(UnsupportedVersion):
                    decode_request(msgspec_raw(content, fmt), fmt)

    def test_the_one_before_is_read(self):
        assert decode_request(b'{"v": %d, "task": "x"}' % (VERSION - 1)).task == "x"

    def test_none_means_the_current_one(self):
        assert decode_request(b'{"task": "x"}').v == VERSION


class TestRequests:
    def test_unknown_keys_fold_into_inputs(self):
        request = decode_request(b'{"task":"image_captioning","image_url":"https://e.org/a.png","n":{"a":1}}')
        assert request == Request(
            task="image_captioning", inputs={"image_url": "https://e.org/a.png", "n": {"a": 1}}
        )

    def test_folded_keys_join_those_in_inputs(self):
        assert decode_request(b'{"text":"a","inputs":{"lang":"en"}}').inputs == {"text": "a", "lang": "en"}

    def test_a_key_in_both_places_is_refused(self):
        with pytest.raises(Malformed, match="once"):
            decode_request(b'{"text":"a","inputs":{"text":"b"}}')

    @pytest.mark.parametrize(
        ("raw", "level"),
        [
            (b'{"privacy_level":"HIGH"}', "high"),
            (b'{"privacy_level":"high"}', "high"),
            (b'{"privacy_level":"NORMAL"}', "normal"),
            (b'{"privacy_level":"HIGH","privacy":"normal"}', "high"),
            (b'{"privacy_level":"LOW","privacy":"high"}', "high"),
            (b'{"privacy":"high"}', "high"),
        ],
    )
    def test_privacy_level(self, raw, level):
        request = decode_request(raw)
        assert request.privacy == level
        assert request.inputs == {}

    @pytest.mark.parametrize(
        "raw",
        [
            b'{"privacy_level":"MEDIUM"}',
            b'{"privacy_level":1}',
            b'{"Privacy":"high"}',
            b'{"privacyLevel":"HIGH"}',
            b'{"PRIVACY_LEVEL":"HIGH"}',
            b'{"privacy":"HIGH"}',
            b'{"privacy":null}',
        ],
    )
    def test_unclear_privacy_is_refused(self, raw):
        with pytest.raises(Malformed):
            decode_request(raw)

    @pytest.mark.parametrize(
        "wrong",
        [
            {"id": ""},
            {"id": "é" * 65},
            {"id": 5},
            {"deadline_ms": 0},
            {"deadline_ms": 600_001},
            {"max_cost": -0.1},
            {"max_cost": math.nan},
            {"max_cost": math.inf},
            {"tenant": "a b"},
            {"tenant": ""},
            {"tenant": "a\n"},
            {"tenant": "x" * 65},
            {"task": ""},
            {"task": "x" * 129},
            {"reply_to": "x" * 250},
            {"inputs": []},
            {"type": "plan"},
            {"claim": {"dataref": "a", "sha256": "b", "size": -1}},
        ],
        ids=str,
    )
    def test_fields_out_of_bounds(self, wrong):
        with pytest.raises(Malformed):
            decode_request(msgspec.msgpack.encode(wrong))

    def test_an_id_may_be_any_text(self):
        for identity in ("é" * 64, " ", "\x1f", "a/b", "\x00"):
            assert decode_request(msgspec.msgpack.encode({"id": identity})).id == identity

    @pytest.mark.parametrize("start", [b"", b" \n", b"\xef\xbb\xbf", b"\xef\xbb\xbf \t"])
    def test_json_without_a_header(self, start):
        assert decode_request(start + b'{"task":"x"}').task == "x"


class TestFormat:
    @pytest.mark.parametrize(
        ("content_type", "raw", "expected"),
        [
            ("application/json", b"\x80", "json"),
            ("application/json; charset=utf-8", b"", "json"),
            ("Application/CloudEvents+JSON", b"", "json"),
            ("application/msgpack", b"{", "msgpack"),
            ("application/x-msgpack", b"{", "msgpack"),
            ("application/vnd.msgpack", b"{", "msgpack"),
            ("text/plain", b"{}", "json"),
            (None, b"{}", "json"),
            (None, b"\n {}", "json"),
            (None, b"\x80", "msgpack"),
            (None, b"", "msgpack"),
        ],
    )
    def test_by_header_else_by_first_byte(self, content_type, raw, expected):
        assert format_of(content_type, raw) == expected


class TestDigest:
    def test_says_what_is_asked_and_not_by_whom(self):
        asked = Request(id="1", task="t", inputs={"a": 1, "b": [2]}, deadline_ms=5)
        again = Request(
            id="2", task="t", inputs={"b": [2], "a": 1}, deadline_ms=9, reply_to="results.x", tenant="t"
        )
        assert digest_of(asked) == digest_of(again)
        assert len(digest_of(asked)) == 32

    @pytest.mark.parametrize(
        "change",
        [
            {"task": "u"},
            {"query": "q"},
            {"inputs": {}},
            {"params": {"x": 1}},
            {"privacy": "high"},
            {"max_cost": 1.0},
        ],
    )
    def test_differs_with_the_content(self, change):
        asked = Request(id="1", task="t", inputs={"a": 1})
        assert digest_of(asked) != digest_of(msgspec.structs.replace(asked, **change))

    @given(VALUES)
    @settings(max_examples=50, deadline=None)
    def test_any_value_has_one(self, value):
        assert digest_of(Request(inputs={"a": value})) == digest_of(Request(inputs={"a": value}))


def test_unknown_keys_inside_are_ignored():
    raw = msgspec.msgpack.encode(
        {
            "type": "plan",
            "new": 1,
            "request": {"id": "r", "accepted": 1, "deadline": 2, "newer": [1]},
            "rules": "x",
        }
    )
    assert decode(raw, Plan) == Plan(request=RequestInfo(id="r", accepted=1, deadline=2), rules="x")
