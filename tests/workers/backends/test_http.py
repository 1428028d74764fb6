"""The HTTP backend against real servers on this host."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from schemas.cards import Card
from tests.helpers.endpoint import Endpoint, Reply, endpoint
from tests.helpers.faulty_server import self_signed
from tests.helpers.redis import free_port
from workers.backends import Answer, Call, RemoteBackend, Row
from workers.backends.http import HttpBackend, body_of, build
from workers.backends.remote_wire import USUAL
from workers.errors import BadInput, LoadError
from workers.inference import infer

PAID = Card(
    capability="vision/caption", side="cloud", version="1", model="m", model_type="http", max_cost=0.5
)
FREE = Card(
    capability="vision/caption", side="cloud", version="1", model="m", model_type="http", max_cost=0.0
)
ROW = Row({"image_url": "https://example.com/secret-cat.png"}, {})


@pytest.fixture
def server() -> Iterator[Endpoint]:
    yield from endpoint()


async def asked(backend: HttpBackend, *rows: Row, left_s: float = 5.0) -> list[Answer]:
    """Loaded, asked as a worker asks, closed."""
    await backend.load()
    try:
        calls = [Call(f"r/step/cloud/{n}", time.monotonic() + left_s) for n in range(len(rows))]
        return await asyncio.to_thread(infer, backend, rows, lambda _: False, calls)
    finally:
        backend.close()


async def one(backend: HttpBackend, row: Row = ROW, left_s: float = 5.0) -> Answer:
    return (await asked(backend, row, left_s=left_s))[0]


def message(answer: Answer, code: str) -> str:
    assert answer.error is not None
    assert answer.error.code == code, answer.error
    assert "secret" not in answer.error.message
    return answer.error.message


async def test_inputs_stand_at_the_top_and_params_beside_them(server: Endpoint) -> None:
    row = Row({"image_url": "https://example.com/a.png", "raw": b"\x00\xff"}, {"length": 40})
    answer = await one(HttpBackend(FREE, server.url + "/vision/caption"), row)
    assert answer == Answer({"caption": "a crayfish"}, None, None, {})
    (call,) = server.calls
    assert call.path == "/vision/caption"
    assert json.loads(call.body) == {
        "image_url": "https://example.com/a.png",
        "raw": "AP8=",
        "params": {"length": 40},
    }
    assert call.headers["content-type"] == "application/json"
    assert call.headers["idempotency-key"] == "r/step/cloud/0"
    assert call.headers["edgeway-capability"] == "vision/caption"


@pytest.mark.parametrize(
    ("said", "output", "confidence", "cost", "usage"),
    [
        ({"output": "a cat"}, "a cat", None, None, {}),
        (
            {"output": [1], "confidence": 0.9, "cost": 0.1, "usage": {"tokens": 7}},
            [1],
            0.9,
            0.1,
            {"tokens": 7},
        ),
        (
            {"caption": "a cat", "confidence": 0.8},
            {"caption": "a cat", "confidence": 0.8},
            0.8,
            None,
            {},
        ),
        (
            {"caption": "a cat", "confidence": "high"},
            {"caption": "a cat", "confidence": "high"},
            None,
            None,
            {},
        ),
        ("a cat", "a cat", None, None, {}),
        (["a", "cat"], ["a", "cat"], None, None, {}),
    ],
)
async def test_what_may_be_answered(
    server: Endpoint, said: Any, output: Any, confidence: Any, cost: Any, usage: Any
) -> None:
    server.reply = lambda _: Reply(body=json.dumps(said).encode())
    assert await one(HttpBackend(FREE, server.url)) == Answer(output, confidence, cost, usage)


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"",
        b'{"output": 1, "confidence": 2}',
        b'{"output": 1, "cost": -1}',
        b'{"output": 1, "cost": true}',
        b'{"output": 1, "usage": [1]}',
        b'{"output": NaN}',
        b"[" * 5000,
        b"\xff\xfe",
    ],
)
async def test_an_answer_that_is_none(server: Endpoint, body: bytes) -> None:
    server.reply = lambda _: Reply(body=body)
    answer = await one(HttpBackend(PAID, server.url))
    assert "answered" in message(answer, "backend_error")
    assert answer.cost is None, "the call was carried out, and may have to be paid"


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "bad_input"),
        (413, "bad_input"),
        (422, "bad_input"),
        (401, "backend_error"),
        (404, "backend_error"),
        (408, "backend_error"),
        (425, "backend_error"),
        (429, "backend_error"),
        (500, "backend_error"),
        (503, "backend_error"),
    ],
)
async def test_statuses(server: Endpoint, status: int, code: str) -> None:
    server.reply = lambda _: Reply(status, b'{"detail": "secret-cat.png"}')
    answer = await one(HttpBackend(PAID, server.url))
    assert f"answered {status}" in message(answer, code)
    assert answer.cost == (0.0 if status < 500 else None), "a refused call costs nothing"


async def test_a_redirect_is_not_followed(server: Endpoint) -> None:
    server.reply = lambda _: Reply(307, headers={"location": server.url + "/elsewhere"})
    assert "redirect" in message(await one(HttpBackend(FREE, server.url)), "backend_error")
    assert [call.path for call in server.calls] == ["/"]


async def test_silence_ends_with_the_deadline(server: Endpoint) -> None:
    server.reply = lambda _: Reply(after_s=3.0)
    began = time.monotonic()
    answer = await one(HttpBackend(PAID, server.url), left_s=0.4)
    assert time.monotonic() - began < 1.5
    assert "no answer within 0.4 s" in message(answer, "backend_error")
    assert answer.cost is None


async def test_a_trickle_ends_with_the_deadline(server: Endpoint) -> None:
    server.reply = lambda _: Reply(body=b"x" * 100, trickle_s=0.1)
    began = time.monotonic()
    message(await one(HttpBackend(FREE, server.url), left_s=0.5), "backend_error")
    assert time.monotonic() - began < 1.5


async def test_an_endless_answer_is_not_read(server: Endpoint) -> None:
    server.reply = lambda _: Reply(body=b'"' + b"x" * (2 * USUAL.answer_bytes))
    assert str(USUAL.answer_bytes) in message(await one(HttpBackend(FREE, server.url)), "backend_error")


async def test_a_certificate_must_be_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = self_signed(tmp_path)
    for server in endpoint(certificate):
        assert "certificate" in message(await one(HttpBackend(FREE, server.url)), "backend_error")
        assert server.calls == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
        assert (await one(HttpBackend(FREE, server.url))).error is None


async def test_nobody_there() -> None:
    answer = await one(HttpBackend(PAID, f"http://127.0.0.1:{free_port()}/secret"))
    assert "cannot be reached" in message(answer, "backend_error")
    assert answer.cost == 0.0, "what never left cannot be paid"


@pytest.mark.parametrize(("card", "calls"), [(FREE, 3), (PAID, 1)])
async def test_only_what_is_free_is_sent_again(server: Endpoint, card: Card, calls: int) -> None:
    server.reply = lambda _: Reply(cut=True)
    answer = await one(HttpBackend(card, server.url))
    assert "cut the call off" in message(answer, "backend_error")
    assert answer.cost is None
    assert [call.headers["idempotency-key"] for call in server.calls] == ["r/step/cloud/0"] * calls


async def test_rows_go_side_by_side_and_fail_alone(server: Endpoint) -> None:
    def reply(call: Any) -> Reply:
        n = json.loads(call.body)["n"]
        return Reply(500, after_s=0.3) if n == 3 else Reply(body=str(n).encode(), after_s=0.3)

    server.reply = reply
    began = time.monotonic()
    answers = await asked(HttpBackend(FREE, server.url), *(Row({"n": n}, {}) for n in range(8)))
    assert time.monotonic() - began < 1.5
    assert [answer.output for answer in answers] == [0, 1, 2, None, 4, 5, 6, 7]
    message(answers[3], "backend_error")
    assert len(server.calls) == 8, "a bad row sends no other again"


async def test_a_bad_row_never_leaves(server: Endpoint) -> None:
    answer = await one(HttpBackend(FREE, server.url), Row({"params": "secret"}, {"length": 1}))
    assert "rename the input" in message(answer, "bad_input")
    assert server.calls == []


async def test_neither_keys_nor_payloads_are_told(server: Endpoint, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    url = server.url.replace("http://", "http://user:secret-word@") + "/?key=secret-key"
    server.reply = lambda _: Reply(500)
    message(await one(HttpBackend(FREE, url)), "backend_error")
    assert server.calls[0].headers["authorization"].startswith("Basic ")
    assert "secret" not in caplog.text


async def test_it_follows_a_new_url(server: Endpoint) -> None:
    backend = HttpBackend(FREE, "http://127.0.0.1:1/old")
    await backend.load()
    backend.point(PAID, server.url + "/new")
    assert backend.infer([ROW])[0].error is None
    assert backend.card is PAID
    backend.point(PAID, None)
    assert "no fallback_url" in message(backend.infer([ROW])[0], "backend_error")
    backend.close()
    assert [call.path for call in server.calls] == ["/new"]


@pytest.mark.parametrize(
    "url", ["ftp://example.com", "/vision", "http://", "http://secret:99999", "http://secret:x"]
)
def test_no_url(url: str) -> None:
    with pytest.raises(LoadError, match="https://HOST/PATH") as caught:
        HttpBackend(FREE, url)
    assert "secret" not in str(caught.value)


def test_it_is_a_kind_that_cards_name(server: Endpoint) -> None:
    assert isinstance(build(FREE, {"url": server.url}), RemoteBackend)
    with pytest.raises(LoadError):
        build(FREE, {"url": server.url, "retries": 3})
    with pytest.raises(LoadError, match="not loaded"):
        build(FREE, {"url": server.url}).infer([ROW])


def test_a_body_of_what_json_has_no_word_for() -> None:
    with pytest.raises(BadInput):
        body_of(Row({"x": object()}, {}))
