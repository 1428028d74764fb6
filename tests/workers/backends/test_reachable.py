"""A service that dies and comes back, as backends learn of it; real servers on this host."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from schemas.cards import Card
from tests.helpers import inference_server as fake
from tests.helpers.faulty_server import FAULTS, Asked, Fault, FaultyServer, faulty, self_signed
from tests.helpers.inference_server import grpc_server
from workers.backends import Answer, Backend, Call, Reachable, RemoteBackend, Row, registry
from workers.backends.http import HttpBackend, build
from workers.backends.open_inference import OpenInferenceBackend
from workers.backends.openai import OpenAIBackend
from workers.backends.remote_keys import Key, Keys
from workers.backends.remote_reach import FIRST_S, SPREAD
from workers.errors import LoadError

CARD = Card(capability="a/b", side="cloud", version="1", model="m", model_type="http", max_cost=0.5)
KNOWN_S = 2.0
"""Far more than the first look takes."""
EVERY_S = 0.4
BACK_S = EVERY_S * (1 + SPREAD) + 1.5


class Subject(NamedTuple):
    make: Callable[[], Backend]
    row: Row
    server: Any
    health: str = ""


def answer(asked: Asked) -> Any:
    """Of all kinds over HTTP."""
    if "/chat/completions" in asked.path:
        message = {"role": "assistant", "content": "yes"}
        return {"choices": [{"message": message, "finish_reason": "stop"}], "usage": {}}
    return fake.rest_answer(asked) if asked.path.startswith("/v2") else {"output": "done"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks come often; tests/integration/test_away.py takes them as they are."""
    monkeypatch.setattr("workers.backends.remote_reach.EVERY_S", EVERY_S)
    monkeypatch.setattr("workers.backends.remote_reach.LEAST_S", 0.1)
    monkeypatch.setenv("SOME_KEY", "word-4111")


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with faulty(answer) as started:
        yield started


@pytest.fixture
def other() -> Iterator[FaultyServer]:
    with faulty(answer) as started:
        yield started


@pytest.fixture(params=["http", "openai", "rest", "grpc"])
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    if request.param == "grpc":
        with grpc_server() as grpc:
            yield Subject(lambda: oip(grpc.url), Row({"v": [1.0, 0.0]}, {}), grpc)
        return
    with faulty(answer) as started:
        url = started.url
        if request.param == "rest":
            yield Subject(lambda: oip(url), Row({"v": [1.0, 0.0]}, {}), started, "/v2/health/ready")
        elif request.param == "openai":
            yield Subject(lambda: chat(started), Row({"text": "?"}, {}), started, "/v1/models?tier=a")
        else:
            options = {
                "url": f"{url}/do",
                "probe_url": f"{url}/health",
                "headers_env": {"authorization": "SOME_KEY"},
            }
            yield Subject(lambda: build(CARD, options), Row({"n": 1}, {}), started, "/health")


def oip(url: str) -> Backend:
    options = {"url": url, "model": "double", "ready_s": 1, "inputs": {"v": "x"}, "key_env": "SOME_KEY"}
    return registry.build(msgspec.structs.replace(CARD, model_type="open_inference"), options)


def chat(server: FaultyServer) -> Backend:
    return OpenAIBackend("cloud/a/b", url=f"{server.url}/v1?tier=a", model="m", key_env="SOME_KEY")


@asynccontextmanager
async def ready(made: Backend) -> AsyncIterator[Any]:
    await made.load()
    try:
        yield made
    finally:
        made.close()


async def ask(backend: Any, row: Row, left_s: float = 2.0) -> Answer:
    assert isinstance(backend, RemoteBackend)
    call = Call("r/s/cloud/1", time.monotonic() + left_s)
    found: Answer = (await asyncio.to_thread(backend.infer_calls, [row], [call]))[0]
    return found


async def until(backend: Any, known: bool | None, within_s: float = KNOWN_S) -> float:
    """How long it took."""
    assert isinstance(backend, Reachable)
    began = time.monotonic()
    while backend.reachable() is not known:
        assert time.monotonic() - began < within_s, f"still {backend.reachable()}"
        await asyncio.sleep(0.01)
    return time.monotonic() - began


def gets(server: FaultyServer) -> list[Asked]:
    return [asked for asked in server.calls if asked.method == "GET"]


def posts(server: FaultyServer) -> list[Asked]:
    return [asked for asked in server.calls if asked.method == "POST"]


async def test_it_dies_and_comes_back(subject: Subject) -> None:
    async with ready(subject.make()) as backend:
        assert backend.reachable() is None
        assert (await ask(backend, subject.row)).error is None
        assert backend.reachable() is True
        subject.server.stop()
        failed = await ask(backend, subject.row)
        assert failed.error is not None
        await until(backend, False)
        refused = await ask(backend, subject.row)
        assert refused.error is not None
        assert "was not asked: it is away" in refused.error.message
        assert refused.cost == 0.0
        subject.server.start()
        await until(backend, True, BACK_S)
        assert (await ask(backend, subject.row)).error is None


@pytest.mark.parametrize("subject", ["http", "openai", "rest"], indirect=True)
async def test_no_request_is_spent_on_what_a_gateway_calls_away(subject: Subject) -> None:
    server = subject.server
    async with ready(subject.make()) as backend:
        assert (await ask(backend, subject.row)).error is None
        server.fault = lambda _: FAULTS["503"]
        await ask(backend, subject.row)
        await until(backend, False)
        spent = len(posts(server))
        for _ in range(3):
            assert (await ask(backend, subject.row)).cost == 0.0
        assert len(posts(server)) == spent
        looks = [asked for asked in gets(server) if asked.path == subject.health]
        assert looks
        assert {asked.headers["authorization"].removeprefix("Bearer ") for asked in looks} == {"word-4111"}
        assert all(asked.body == b"" and not asked.key for asked in looks)
        server.fault = lambda _: None
        await until(backend, True, BACK_S)
        assert len(posts(server)) == spent
        assert (await ask(backend, subject.row)).error is None
        before = len(gets(server))
        await asyncio.sleep(EVERY_S * (1 + SPREAD) + 0.2)
        assert len(gets(server)) == before, "it is looked for no more"


async def test_who_calls_right_after_its_return_is_answered(subject: Subject) -> None:
    async with ready(subject.make()) as backend:
        subject.server.stop()
        await ask(backend, subject.row)
        await until(backend, False)
        subject.server.start()
        began = time.monotonic()
        # gRPC waits a second between its attempts to connect.
        answered = await ask(backend, subject.row)
        if answered.error is not None:
            answered = await ask(backend, subject.row)
        assert answered.error is None, answered.error
        assert time.monotonic() - began < 2.5


async def test_closed_while_it_looks_it_leaves_nothing_behind(subject: Subject) -> None:
    before = set(threading.enumerate())
    async with ready(subject.make()) as backend:
        subject.server.stop()
        await ask(backend, subject.row)
        await until(backend, False)
    assert backend.reachable() is None
    async with asyncio.timeout(5):
        while any(thread.name == "a/b" for thread in set(threading.enumerate()) - before):
            await asyncio.sleep(0.02)


async def test_nothing_is_asked_of_what_was_never_called_or_answers(server: FaultyServer) -> None:
    async with ready(chat(server)) as backend:
        await asyncio.sleep(FIRST_S * 2)
        assert server.calls == []
        assert backend.reachable() is None
        for _ in range(5):
            assert (await ask(backend, Row({"text": "?"}, {}))).error is None
        assert gets(server) == []


@pytest.mark.parametrize("name", ["400", "401", "404", "429", "500", "malformed"])
async def test_what_answers_is_not_away(server: FaultyServer, name: str) -> None:
    server.fault = lambda _: FAULTS[name]
    async with ready(chat(server)) as backend:
        assert (await ask(backend, Row({"text": "?"}, {}))).error is not None
        await asyncio.sleep(FIRST_S * 2)
        assert gets(server) == []
        assert backend.reachable() is True


async def test_one_lost_call_among_good_ones_is_no_reason_to_look(server: FaultyServer) -> None:
    async with ready(chat(server)) as backend:
        server.fault = lambda _: FAULTS["503"] if len(server.calls) % 7 == 3 else None
        for _ in range(40):
            await ask(backend, Row({"text": "?"}, {}))
            await asyncio.sleep(0.02)
        assert gets(server) == []
        assert backend.reachable() is True


async def test_a_service_that_is_there_and_fails_is_not_shut_off(server: FaultyServer) -> None:
    server.fault = lambda asked: FAULTS["503"] if asked.method == "POST" else None
    async with ready(chat(server)) as backend:
        for _ in range(10):
            await ask(backend, Row({"text": "?"}, {}))
            assert backend.reachable() is not False
            await asyncio.sleep(0.1)
        assert len(posts(server)) == 10 * 3, "each is tried as often as ever"
        assert 1 <= len(gets(server)) <= 12


async def test_silence_is_being_away(server: FaultyServer) -> None:
    server.fault = lambda _: FAULTS["never answers"]
    async with ready(chat(server)) as backend:
        assert (await ask(backend, Row({"text": "?"}, {}), left_s=0.2)).error is not None
        await until(backend, False, 3.0)


async def test_plain_http_is_asked_nothing_where_nobody_says_what(server: FaultyServer) -> None:
    async with ready(HttpBackend(CARD, server.url)) as backend:
        server.fault = lambda _: FAULTS["503"]
        for _ in range(3):
            await ask(backend, Row({"n": 1}, {}))
        await asyncio.sleep(FIRST_S * 2)
        assert len(posts(server)) == 3
        assert gets(server) == []
        assert backend.reachable() is None


async def test_a_key_stays_with_the_service(server: FaultyServer, other: FaultyServer) -> None:
    keys = Keys({"x-key": Key(env="SOME_KEY")})
    other.fault = lambda _: FAULTS["503"]
    async with ready(HttpBackend(CARD, server.url, keys=keys, probe_url=f"{other.url}/up")) as backend:
        server.stop()
        await ask(backend, Row({"n": 1}, {}))
        await until(backend, False)
        assert all("x-key" not in asked.headers for asked in other.calls)
        other.fault = lambda _: None
        await until(backend, True, BACK_S)


async def test_a_look_is_sent_elsewhere_only_where_calls_are(
    server: FaultyServer, other: FaultyServer
) -> None:
    server.fault = lambda asked: (
        FAULTS["503"] if asked.method == "POST" else Fault(307, {"location": f"{other.url}/up"}, b"")
    )
    other.fault = lambda _: FAULTS["503"]
    host = other.url.partition("://")[2]
    for hosts, known in (([], None), ([host], False)):
        options = {"url": server.url, "probe_url": f"{server.url}/up", "redirect_hosts": hosts}
        async with ready(build(CARD, options | {"headers_env": {"x-key": "SOME_KEY"}})) as backend:
            await ask(backend, Row({"n": 1}, {}))
            await until(backend, True if known is None else known)
    assert [asked.method for asked in other.calls] == ["GET"]
    assert all("x-key" not in asked.headers for asked in other.calls)


async def test_a_certificate_that_is_not_trusted_is_no_service_that_is_away(tmp_path: Path) -> None:
    with faulty(answer, self_signed(tmp_path)) as server:
        async with ready(HttpBackend(CARD, server.url, probe_url=server.url)) as backend:
            assert "not trusted" in str((await ask(backend, Row({"n": 1}, {}))).error)
            await asyncio.sleep(FIRST_S * 2)
            assert backend.reachable() is None


@pytest.mark.parametrize("url", ["ftp://example.com", "https://example.com/?api_key=4111", "nowhere"])
def test_a_probe_url_is_a_url_without_a_key(url: str) -> None:
    with pytest.raises(LoadError) as caught:
        build(CARD, {"url": "https://example.com", "probe_url": url})
    assert "4111" not in str(caught.value)


async def test_a_server_that_was_never_there_is_away() -> None:
    with grpc_server() as server:
        server.stop()
        made = OpenInferenceBackend("cloud/a/b", url=server.url, model="double", ready_s=0)
        async with ready(made) as backend:
            assert backend.reachable() is False
