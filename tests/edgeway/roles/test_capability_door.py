"""A worker's HTTP door: a real server, real clients."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import httpx
import msgspec
import pytest
from prometheus_client import REGISTRY

from edgeway.roles import capability_door, guard
from schemas.cards import Card
from schemas.limits import MAX_RECORD_BYTES
from streams.settings import Settings
from streams.settings.kinds import Secret
from tests.helpers.http_door import Served, served
from workers.backends import Answer, Row, kin_of
from workers.sdk import BadInput, CapabilityError, capability

SECRET = "4111-secret"


class Gated:
    """Notes its batches; each run waits for `gate`."""

    def __init__(self, name: str = "test/gated", **fields: Any) -> None:
        base: dict[str, Any] = {"side": "local", "version": "7", "model": "m", "max_batch": 16}
        self.card = Card(capability=name, **base | fields)
        self.gate = threading.Event()
        self.entered = threading.Event()
        self.batches: list[list[Row]] = []

    async def load(self) -> None: ...

    def kin(self, row: Row) -> Any:
        return kin_of(row)

    def infer(self, rows: Sequence[Row]) -> list[Answer]:
        self.batches.append(list(rows))
        self.entered.set()
        self.gate.wait(20)
        return [Answer(row.inputs.get("n")) for row in rows]

    def close(self) -> None:
        self.gate.set()


@capability("local/nlp/summarize")
def summarize(text: str, sentences: int = 1) -> tuple[dict[str, str], float]:
    """The first sentences."""
    if not text:
        raise BadInput("text is empty")
    return {"summary": ".".join(text.split(".")[:sentences])}, 0.5


@capability("local/test/failing")
def failing(text: str) -> str:
    if text == "busy":
        raise CapabilityError("overloaded", "the index is being built")
    raise RuntimeError(f"no luck with {text}")


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


async def entered(backend: Gated) -> None:
    assert await asyncio.to_thread(backend.entered.wait, 10)


async def test_the_originals_call_is_answered() -> None:
    async with served(summarize) as door:
        for path in ("/summarize", "/nlp/summarize", "/local/nlp/summarize"):
            answer = await door.call(path, {"text": "One. Two. Three."})
            assert answer.status_code == 200
            told = answer.json()
            assert told["output"] == {"summary": "One"}
            assert (told["confidence"], told["model"]["version"]) == (0.5, "1")
            assert told["timings"]["total_ms"] > 0
        more = await door.call(
            "/summarize", {"inputs": {"text": "One. Two. Three."}, "params": {"sentences": 2}}
        )
        assert more.json()["output"] == {"summary": "One. Two"}
        plain = await door.client.post(
            "/summarize", content="Eins. Zwei.", headers={"content-type": "text/plain"}
        )
        assert plain.json()["output"] == {"summary": "Eins"}
        packed = await door.client.post(
            "/summarize",
            content=msgspec.msgpack.encode({"text": "A. B."}),
            headers={"content-type": "application/msgpack"},
        )
        assert packed.headers["content-type"] == "application/msgpack"
        assert msgspec.msgpack.decode(packed.content)["output"] == {"summary": "A"}


async def test_errors_are_problems_and_quote_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with served(summarize, failing) as door:
        cases: list[tuple[str, Any, int, str]] = [
            ("/summarize", {"text": ""}, 422, "bad_input"),
            ("/summarize", {"text": [SECRET]}, 422, "bad_input"),
            ("/summarize", {}, 422, "bad_input"),
            ("/summarize", [SECRET], 400, "malformed"),
            ("/failing", {"text": SECRET}, 500, "backend_error"),
            ("/failing", {"text": "busy"}, 429, "overloaded"),
            ("/absent", {"text": SECRET}, 404, "unknown_capability"),
            ("/summarize", {"text": "x" * MAX_RECORD_BYTES}, 413, "too_large"),
        ]
        for path, body, status, code in cases:
            answer = await door.call(path, body)
            assert (answer.status_code, answer.json()["code"]) == (status, code)
            assert answer.headers["content-type"] == "application/problem+json"
            assert SECRET not in answer.text
        wrong = await door.client.get("/summarize")
        assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
        form = await door.client.post("/summarize", data={"text": "a"})
        assert form.status_code == 415
        assert "curl" in form.json()["detail"]
    assert SECRET not in caplog.text


async def test_parallel_calls_share_runs_of_the_model() -> None:
    gated = Gated()
    async with served(gated) as door:
        first = asyncio.create_task(door.call("/gated", {"n": 0}))
        await entered(gated)
        others = [asyncio.create_task(door.call("/gated", {"n": n})) for n in range(1, 33)]
        await until(lambda: door.worker.pending == 33)
        gated.gate.set()
        answers = await asyncio.gather(first, *others)
    assert [answer.json()["output"] for answer in answers] == list(range(33))
    sizes = [len(batch) for batch in gated.batches]
    assert (sum(sizes), max(sizes)) == (33, 16)
    assert len(sizes) <= 6


async def test_a_caller_may_want_small_batches() -> None:
    gated = Gated()
    async with served(gated) as door:
        first = asyncio.create_task(door.call("/gated", {"n": 0}))
        await entered(gated)
        body = {"inputs": {"n": 1}, "max_batch": 2}
        others = [asyncio.create_task(door.call("/gated", body)) for _ in range(4)]
        await until(lambda: door.worker.pending == 5)
        gated.gate.set()
        await asyncio.gather(first, *others)
    assert [len(batch) for batch in gated.batches] == [1, 2, 2]


async def test_a_full_queue_is_told_with_a_time_to_come_again() -> None:
    gated = Gated()
    async with served(gated, max_rows=3) as door:
        first = asyncio.create_task(door.call("/gated", {"n": 0}))
        await entered(gated)
        waiting = [asyncio.create_task(door.call("/gated", {"n": n})) for n in range(1, 4)]
        await until(lambda: door.worker.pending == 4)
        full = await door.call("/gated", {"n": 9})
        assert (full.status_code, full.headers["retry-after"]) == (429, "1")
        assert full.json()["title"] == "The queue is full"
        gated.gate.set()
        answers = await asyncio.gather(first, *waiting)
        assert [answer.status_code for answer in answers] == [200] * 4
        assert (await door.call("/gated", {"n": 9})).status_code == 200


async def test_calls_and_their_bytes_are_bounded() -> None:
    gated = Gated()
    settings = Settings(http_requests=2, window_bytes=2**20)
    async with served(gated, settings=settings) as door:
        first = asyncio.create_task(door.call("/gated", {"n": 0, "x": "x" * 700_000}))
        await entered(gated)
        large = await door.call("/gated", {"n": 1, "x": "x" * 700_000})
        assert (large.status_code, "bodies" in large.json()["detail"]) == (429, True)
        second = asyncio.create_task(door.call("/gated", {"n": 1}))
        await until(lambda: door.door.calls == 2)
        third = await door.call("/gated", {"n": 2})
        assert (third.status_code, "2 calls" in third.json()["detail"]) == (429, True)
        # What tells of the worker's state is answered all the same.
        assert (await door.client.get("/healthz")).status_code == 200
        gated.gate.set()
        assert {answer.status_code for answer in await asyncio.gather(first, second)} == {200}
        assert door.door.calls == 0


async def test_a_capability_with_a_rate_is_not_called_faster() -> None:
    @capability("local/test/paced", qps=2)
    def paced(inputs: dict[str, Any], params: dict[str, Any]) -> int:
        return 1

    async with served(paced) as door:
        answers = [await door.call("/paced", {}) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert answers[2].headers["retry-after"] == "1"
        assert "2 calls a second" in answers[2].json()["detail"]
        await asyncio.sleep(0.6)
        assert (await door.call("/paced", {})).status_code == 200


async def test_a_deadline_ends_the_wait() -> None:
    gated = Gated()
    async with served(gated) as door:
        began = time.monotonic()
        late = await door.call("/gated", {"n": 1}, headers={"Edgeway-Deadline-Ms": "100"})
        assert (late.status_code, late.json()["code"]) == (504, "deadline_exceeded")
        assert time.monotonic() - began < 5.0
        gated.gate.set()


async def test_a_key_gets_the_answer_of_the_call_under_way() -> None:
    gated = Gated()
    async with served(gated) as door:
        calls = [
            asyncio.create_task(door.call("/gated", {"n": 1}, headers={"Idempotency-Key": "k1"}))
            for _ in range(3)
        ]
        await entered(gated)
        await until(lambda: door.door.calls == 3)
        other = await door.call("/gated", {"n": 2}, headers={"Idempotency-Key": "k1"})
        assert (other.status_code, other.json()["code"]) == (409, "id_conflict")
        # Somebody who goes takes the answer from nobody else.
        calls[0].cancel()
        await until(lambda: door.door.calls == 2)
        gated.gate.set()
        answers = await asyncio.gather(*calls[1:])
        assert [(answer.json()["id"], answer.json()["output"]) for answer in answers] == [("k1", 1)] * 2
        assert sum(len(batch) for batch in gated.batches) == 1
        again = await door.call("/gated", {"n": 2}, headers={"Idempotency-Key": "k1"})
        assert again.json()["output"] == 2


async def test_a_row_whose_caller_has_gone_is_dropped() -> None:
    gated = Gated()
    async with served(gated) as door:
        first = asyncio.create_task(door.call("/gated", {"n": 0}))
        await entered(gated)
        for headers in ({}, {"Idempotency-Key": "gone"}):
            gone = asyncio.create_task(door.call("/gated", {"n": 1}, headers=headers))
            await until(lambda: door.worker.pending == 2)
            gone.cancel()
            await until(lambda: door.worker.pending == 1)
        gated.gate.set()
        assert (await first).status_code == 200
    assert [len(batch) for batch in gated.batches] == [1]


async def test_a_worker_that_is_not_ready_says_so() -> None:
    async with served(summarize) as door:
        door.ready = False
        answer = await door.call("/summarize", {"text": "a"})
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        door.ready = True
        assert (await door.call("/summarize", {"text": "a"})).status_code == 200
        await door.worker.stop(0.0)
        assert (await door.call("/summarize", {"text": "a"})).status_code == 503


async def test_a_token_may_be_any_text() -> None:
    async with served(summarize, settings=Settings(http_token=Secret("gehe\u00efm \u7532"))) as door:
        for given, status in (("gehe\u00efm \u7532", 200), ("gehe\u00efm", 401), ("geheim \u7532", 401)):
            headers = {"Authorization": f"Bearer {given}".encode()}
            answer = await door.client.post("/summarize", json={"text": "a"}, headers=headers)
            assert answer.status_code == status


async def test_pages_of_a_name_that_was_pointed_here_are_refused() -> None:
    evil = {"Host": "evil.example", "Origin": "http://evil.example"}
    async with served(summarize) as door:
        assert (await door.call("/summarize", {"text": "a"}, headers=evil)).status_code == 403
        own = {"Host": "local-nlp", "Origin": "http://local-nlp"}
        assert (await door.call("/summarize", {"text": "a"}, headers=own)).status_code == 200


async def test_a_compressed_body_is_refused_as_such() -> None:
    async with served(summarize) as door:
        packed = await door.call("/summarize", {"text": "a"}, headers={"Content-Encoding": "gzip"})
        assert (packed.status_code, packed.json()["title"]) == (415, "Compressed")
        plain = await door.call("/summarize", {"text": "a"}, headers={"Content-Encoding": "identity"})
        assert plain.status_code == 200


async def test_a_token_is_asked_for_and_pages_of_others_are_refused() -> None:
    async with served(summarize, settings=Settings(http_token=Secret("t0ken"))) as door:
        for given in (None, "Bearer wrong", "Bearer", "t0ken", "Basic t0ken", "Bearer t0ken2"):
            headers = {} if given is None else {"Authorization": given}
            answer = await door.call("/summarize", {"text": "a"}, headers=headers)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        right = {"Authorization": "Bearer t0ken"}
        assert (await door.call("/summarize", {"text": "a"}, headers=right)).status_code == 200
        assert (await door.client.get("/healthz")).status_code == 200
        other = await door.call(
            "/summarize", {"text": "a"}, headers={**right, "Origin": "http://evil.example"}
        )
        assert other.status_code == 403
        own = {**right, "Origin": f"http://127.0.0.1:{door.port}"}
        assert (await door.call("/summarize", {"text": "a"}, headers=own)).status_code == 200


async def test_descriptions_and_counts_are_served() -> None:
    async with served(summarize) as door:
        before = REGISTRY.get_sample_value("edgeway_http_calls_total", _labels("200")) or 0.0
        await door.call("/summarize", {"text": "a"})
        assert REGISTRY.get_sample_value("edgeway_http_calls_total", _labels("200")) == before + 1
        shown = (await door.client.get("/metrics")).text
        assert 'edgeway_http_seconds_bucket{capability="nlp/summarize",le="0.005",side="local"}' in shown
        found = (await door.client.get("/openapi.json")).json()
        assert list(found["paths"]) == ["/local/nlp/summarize"]
        docs = await door.client.get("/", follow_redirects=True)
        assert docs.url.path == "/docs"
        assert "default-src 'none'" in docs.headers["content-security-policy"]
        assert "/local/nlp/summarize" in docs.text


def _labels(status: str) -> dict[str, str]:
    return {"capability": "nlp/summarize", "side": "local", "status": status}


async def test_a_thousand_calls_at_once_are_answered() -> None:
    @capability("local/test/double", max_batch=64)
    def double(n: int) -> int:
        return 2 * n

    async with served(double) as door:
        # Each on a connection of its own; the pool of httpx takes longer over a thousand than the door does.
        answers = await asyncio.gather(*(_raw(door, _request({"n": n})) for n in range(1000)))
    told = [json.loads(answer.partition(b"\r\n\r\n")[2])["output"] for answer in answers]
    assert told == [2 * n for n in range(1000)]


def _request(inputs: Any, path: str = "/double") -> bytes:
    body = json.dumps(inputs).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def _raw(door: Served, *parts: bytes, pause_s: float = 0.0) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause_s)
        async with asyncio.timeout(10):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_slow_clients_are_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capability_door, "BODY_S", 0.2)
    monkeypatch.setattr(guard, "HEAD_S", 0.3)
    head = b"POST /summarize HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 50\r\n"
    async with served(summarize) as door:
        silent, dribbling, halved = await asyncio.gather(
            _raw(door),
            _raw(door, *(bytes([byte]) for byte in head), pause_s=0.02),
            _raw(door, head + b"\r\n{"),
        )
        assert (silent, dribbling) == (b"", b"")
        assert halved.startswith(b"HTTP/1.1 408 ")
        assert (await door.call("/summarize", {"text": "a"})).status_code == 200
        assert door.door.calls == 0


async def test_a_client_that_reads_no_answers_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "READ_S", 0.3)

    @capability("local/test/long")
    def long(n: int) -> str:
        return "x" * 900_000

    async with served(long) as door:
        reader, writer = await asyncio.open_connection("127.0.0.1", door.port, limit=2**12)
        ask = _request({"n": 1}, "/long").replace(b"Connection: close\r\n", b"")
        writer.write(ask * 20)
        await asyncio.sleep(2.0)
        found = b""
        with contextlib.suppress(ConnectionError):
            while chunk := await reader.read(2**20):
                found += chunk
        assert len(found) < 20 * 900_000
        writer.close()
        assert (await door.call("/long", {"n": 1})).status_code == 200


async def test_a_slow_call_is_not_taken_for_a_slow_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "HEAD_S", 0.1)
    gated = Gated()
    async with served(gated) as door:
        asking = asyncio.create_task(door.call("/gated", {"n": 5}))
        await entered(gated)
        await asyncio.sleep(0.4)
        gated.gate.set()
        assert (await asking).json()["output"] == 5


async def test_more_connections_than_there_may_be_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "CONNECTIONS", 2)
    async with served(summarize) as door:
        kept = [await asyncio.open_connection("127.0.0.1", door.port) for _ in range(2)]
        await asyncio.sleep(0.05)
        with pytest.raises(httpx.TransportError):
            await door.call("/summarize", {"text": "a"})
        for _, writer in kept:
            writer.close()
        await asyncio.sleep(0.05)
        assert (await door.call("/summarize", {"text": "a"})).status_code == 200


async def test_a_body_without_a_length_is_bounded_too() -> None:
    async def endless() -> Any:
        while True:
            yield b"x" * 65_536

    async with served(summarize) as door:
        began = time.monotonic()
        try:
            answer = await door.client.post(
                "/summarize", content=endless(), headers={"content-type": "text/plain"}
            )
            assert answer.status_code == 413
        except httpx.TransportError:
            pass  # cut while it still sent
        assert time.monotonic() - began < guard.LINGER_S + 5.0
        assert door.door.calls == 0
