"""Partials and refusals to responses, and paths to capabilities."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest

from schemas.errors import ErrorCode
from schemas.messages import Failure, Model, Partial, Side, Timings
from workers.http.answers import reply_of
from workers.http.paths import found
from workers.http.problems import MEDIA_TYPE, Refused, of_refusal

NAMES: list[tuple[Side, str]] = [
    ("local", "nlp/summarize"),
    ("local", "nlp/intent"),
    ("cloud", "nlp/intent"),
    ("local", "text/clean"),
    ("local", "html/clean"),
]


def partial(**fields: Any) -> Partial:
    return Partial(subtask="r/s/local/0", deadline=1, model=Model(name="m", version="7"), **fields)


def test_an_answer_tells_output_model_cost_and_time() -> None:
    timings = Timings(queue_ms=1.25, service_ms=2.0)
    sound = partial(
        output={"image": b"\x00\xff"}, confidence=0.5, cost=0.25, usage={"tokens": 3}, timings=timings
    )
    reply = reply_of(sound, "k", "local/nlp/summarize", "json", 9.87654)
    assert (reply.status, reply.media_type) == (200, "application/json")
    assert msgspec.json.decode(reply.body) == {
        "id": "k",
        "capability": "local/nlp/summarize",
        "output": {"image": "AP8="},
        "confidence": 0.5,
        "cost": 0.25,
        "usage": {"tokens": 3},
        "model": {"name": "m", "version": "7"},
        "timings": {"queue_ms": 1.25, "service_ms": 2.0, "total_ms": 9.877},
    }
    packed = reply_of(sound, "k", "local/nlp/summarize", "msgpack", 1.0)
    assert msgspec.msgpack.decode(packed.body)["output"] == {"image": b"\x00\xff"}


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("bad_input", 422),
        ("object_missing", 422),
        ("deadline_exceeded", 504),
        ("over_budget", 402),
        ("overloaded", 429),
        ("backend_error", 500),
        ("bad_output", 500),
        ("too_large", 500),
        ("unknown_capability", 404),
    ],
)
def test_each_error_has_its_status(code: ErrorCode, status: int) -> None:
    failed = partial(error=Failure(code=code, message="why"), cost=0.5)
    reply = reply_of(failed, "k", "local/a", "msgpack", 1.0)
    assert (reply.status, reply.media_type) == (status, MEDIA_TYPE)
    told = msgspec.json.decode(reply.body)
    assert (told["type"], told["status"], told["detail"]) == (f"urn:edgeway:error:{code}", status, "why")
    assert (told["code"], told["id"], told["cost"], told["model"]["version"]) == (code, "k", 0.5, "7")
    assert (code == "overloaded") == (("Retry-After", "1") in reply.headers)


@pytest.mark.parametrize("code", get_args(ErrorCode))
def test_every_code_makes_a_response(code: ErrorCode) -> None:
    assert 400 <= of_refusal(Refused(code, "why")).status < 600
    assert (
        400 <= reply_of(partial(error=Failure(code=code, message="")), "k", "local/a", "json", 0).status < 600
    )


def test_a_refusal_says_when_to_ask_again() -> None:
    assert ("Retry-After", "3") in of_refusal(Refused("overloaded", "full", retry_after_s=2.6)).headers
    assert ("Retry-After", "1") in of_refusal(Refused("overloaded", "full", retry_after_s=0.01)).headers


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/local/nlp/summarize", ("local", "nlp/summarize")),
        ("/nlp/summarize", ("local", "nlp/summarize")),
        ("/summarize", ("local", "nlp/summarize")),
        ("/summarize/", ("local", "nlp/summarize")),
        ("/cloud/nlp/intent", ("cloud", "nlp/intent")),
        ("/text/clean", ("local", "text/clean")),
    ],
)
def test_the_end_of_a_path_is_enough_where_one_alone_has_it(path: str, name: tuple[str, str]) -> None:
    assert found(path, NAMES) == name


@pytest.mark.parametrize(
    "path", ["/", "/intent", "/nlp/intent", "/clean", "/ummarize", "/p/summarize", "/nlp"]
)
def test_other_paths_are_not_found_and_list_what_there_is(path: str) -> None:
    with pytest.raises(Refused) as caught:
        found(path, NAMES)
    assert caught.value.status == 404
    if path == "/intent":
        assert "/cloud/nlp/intent, /local/nlp/intent; give one of them" in str(caught.value)
    if path == "/":
        assert "/local/html/clean" in str(caught.value)


def test_a_whole_name_goes_before_an_end() -> None:
    names: list[tuple[Side, str]] = [("local", "a"), ("cloud", "local/a")]
    assert found("/local/a", names) == ("local", "a")
