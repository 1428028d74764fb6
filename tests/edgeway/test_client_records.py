"""Records of a caller: what is written, and which results are answers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from edgeway.client_records import Awaited, read_result, ready, to_json
from schemas import codec, headers, ids
from schemas.errors import TooLarge
from schemas.messages import Failure, Request, Result


def record(result: Result) -> SimpleNamespace:
    key = ids.scoped(result.tenant, result.id).encode()
    return SimpleNamespace(key=key, value=codec.encode(result), headers=())


@pytest.mark.parametrize("fmt", ["msgpack", "json"])
def test_a_request_is_written_with_id_key_and_headers(fmt: str) -> None:
    made = ready(Request(task="t", tenant="x", inputs={"a": 1}), fmt, "new")  # type: ignore[arg-type]
    read = codec.decode_request(made.value, codec.format_of(headers.read(made.headers).content_type, b""))
    assert read == Request(id="new", task="t", tenant="x", inputs={"a": 1})
    assert made.key.decode() == made.scoped == ids.scoped("x", "new")
    assert headers.read(made.headers).ce_id == "new"
    assert ready(Request(id="own", task="t"), "json", "new").id == "own"


def test_a_request_beyond_a_record_is_refused() -> None:
    with pytest.raises(TooLarge):
        ready(Request(task="t", inputs={"a": "x" * 2**20}), "msgpack", "new")


def test_the_first_result_is_the_answer_and_others_are_left() -> None:
    awaited = Awaited.nothing()
    awaited.expect(ready(Request(id="a", task="t"), "msgpack", ""))
    awaited.expect(ready(Request(id="b", task="t", tenant="x"), "msgpack", ""))
    other = SimpleNamespace(key=b"someone", value=b"junk", headers=())
    answers = awaited.take(
        [other, record(Result(id="a", status="ok")), record(Result(id="a", status="error"))]
    )
    assert [(result.id, result.status) for result in answers] == [("a", "ok")]
    assert awaited.duplicates == 1
    assert awaited.take([record(Result(id="b", status="ok"))]) == []
    assert len(awaited.take([record(Result(id="b", tenant="x", status="ok"))])) == 1
    assert not awaited.open


def test_a_conflict_answers_the_request_whose_id_it_derives_from() -> None:
    awaited = Awaited.nothing()
    awaited.expect(ready(Request(id="order-1", task="t"), "msgpack", ""))
    failure = Failure(code="id_conflict", message="m")
    conflict = Result(id=ids.conflicting("order-1", "requests/0/9"), status="error", error=failure)
    assert awaited.take([record(conflict)]) == [msgspec.structs.replace(conflict, id="order-1")]
    assert not awaited.open


@pytest.mark.parametrize("fmt", ["msgpack", "json"])
@pytest.mark.parametrize("earlier", [True, False])
def test_what_other_content_under_the_id_got_is_no_answer(fmt: Any, earlier: bool) -> None:
    mine, other = (Request(id="a", task="t", inputs={"n": n}) for n in (1, 2))
    awaited = Awaited.nothing()
    awaited.expect(ready(mine, fmt, ""), given=True)
    awaited.expect(ready(Request(id="ab", task="t"), fmt, ""), given=True)
    take = awaited.take_earlier if earlier else awaited.take
    assert take([record(Result(id="a", status="ok", output=2, digest=codec.digest_of(other)))]) == []
    failure = Failure(code="id_conflict", message="m")
    for asked, answers in ((other, 0), (mine, 1)):
        digest = codec.digest_of(asked)
        conflict = Result(id=ids.conflicting("a", digest), status="error", error=failure, digest=digest)
        assert [found.id for found in take([record(conflict)])] == ["a"] * answers
    assert list(awaited.open) == ["ab"]


def test_an_earlier_result_answers_only_an_id_that_the_caller_chose() -> None:
    awaited = Awaited.nothing()
    awaited.expect(ready(Request(id="mine", task="t"), "msgpack", ""), given=True)
    awaited.expect(ready(Request(task="t"), "msgpack", "drawn"))
    assert awaited.may_be_old()
    past = [record(Result(id="drawn", status="ok")), record(Result(id="other", status="ok"))]
    assert awaited.take_earlier(past) == []
    again = [record(Result(id="mine", status="ok")), record(Result(id="mine", status="error"))]
    assert [found.status for found in awaited.take_earlier(again)] == ["ok"], "the first is the answer"
    assert not awaited.may_be_old()
    assert list(awaited.open.values()) == ["drawn"]


def test_what_is_no_result_reads_as_none() -> None:
    assert read_result(SimpleNamespace(value=None, headers=())) is None
    assert read_result(SimpleNamespace(value=b"\xc1", headers=())) is None


def test_json_of_a_result_has_words_for_everything() -> None:
    assert '"output":"/w=="' in to_json(Result(id="a", status="ok", output=b"\xff"))
    assert '"output":null' in to_json(Result(id="a", status="ok", output=float("nan")))
