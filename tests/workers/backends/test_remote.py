"""Time, size, redirects, retries, keys and TLS of calls to a real server on this host."""

from __future__ import annotations

import asyncio
import gzip
import logging
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from schemas.cards import Card
from tests.helpers.faulty_server import FAULTS, Fault, FaultyServer, faulty, self_signed
from workers.backends import Answer, Call, Row
from workers.backends.http import HttpBackend, build
from workers.backends.remote_keys import Key, Keys, bearer
from workers.backends.remote_wire import Limits
from workers.errors import LoadError

PAID = Card(capability="a/b", side="cloud", version="1", model="m", model_type="http", max_cost=0.5)
FREE = Card(capability="a/b", side="cloud", version="1", model="m", model_type="http", max_cost=0.0)
KEY = "r/s/cloud/1"
ROW = Row({"n": 1}, {})
GONE = Fault(cut_at=0)
GATEWAY = Fault(502, body=b"{}")


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with faulty(lambda _: {"output": "done"}) as started:
        yield started


@pytest.fixture
def other() -> Iterator[FaultyServer]:
    with faulty(lambda _: {"output": "from elsewhere"}) as started:
        yield started


async def ask(backend: HttpBackend, *, left_s: float = 5.0, key: str = KEY) -> Answer:
    await backend.load()
    try:
        call = Call(key, time.monotonic() + left_s)
        return (await asyncio.to_thread(backend.infer_calls, [ROW], [call]))[0]
    finally:
        backend.close()


def first(server: FaultyServer, *faults: Fault) -> None:
    """The first calls fail so, one after the other."""
    left = list(faults)
    server.fault = lambda _: left.pop(0) if left else None


def told(answer: Answer) -> str:
    assert answer.error is not None
    return answer.error.message


def host(server: FaultyServer) -> str:
    return server.url.partition("://")[2]


@pytest.mark.parametrize("fault", [GONE, GATEWAY, Fault(503, body=b"{}"), Fault(504, body=b"{}")])
async def test_under_a_key_that_is_kept_a_lost_answer_is_asked_for_again(
    server: FaultyServer, fault: Fault
) -> None:
    server.idempotent = True
    first(server, fault)
    answer = await ask(HttpBackend(PAID, server.url, limits=Limits(idempotent=True)))
    assert answer.output == "done"
    assert (server.count(KEY), server.paid[KEY]) == (2, 1)


@pytest.mark.parametrize("fault", [GONE, GATEWAY, Fault(503, body=b"{}"), Fault(500, body=b"{}")])
async def test_without_it_nothing_that_may_be_paid_is_asked_again(server: FaultyServer, fault: Fault) -> None:
    first(server, fault)
    answer = await ask(HttpBackend(PAID, server.url))
    assert answer.error is not None
    assert answer.cost is None
    assert (server.count(KEY), server.paid[KEY]) == (1, 1)


async def test_without_a_key_nothing_is_asked_again(server: FaultyServer) -> None:
    first(server, GONE)
    assert (await ask(HttpBackend(FREE, server.url), key="")).error is not None
    assert len(server.calls) == 1


async def test_a_refusal_does_not_undo_what_an_earlier_attempt_may_have_cost(
    server: FaultyServer,
) -> None:
    first(server, GONE, FAULTS["401"])
    answer = await ask(HttpBackend(PAID, server.url, limits=Limits(idempotent=True)))
    assert "answered 401" in told(answer)
    assert answer.cost is None, "the first attempt may have cost something"


async def test_attempts_end(server: FaultyServer) -> None:
    server.fault = lambda _: FAULTS["429"]
    answer = await ask(HttpBackend(PAID, server.url, limits=Limits(attempts=2)))
    assert "429: too many calls (attempt 2)" in told(answer)
    assert answer.cost == 0.0
    assert len(server.calls) == 2


@pytest.mark.parametrize("status", [429, 503])
async def test_a_wait_beyond_the_deadline_is_told_at_once(server: FaultyServer, status: int) -> None:
    server.fault = lambda _: Fault(status, {"retry-after": "7"}, b"{}", paid=False)
    began = time.monotonic()
    answer = await ask(HttpBackend(PAID, server.url))
    assert time.monotonic() - began < 2.0
    assert "it asks to wait 7 s, which is too late for this call" in told(answer)
    assert answer.cost == 0.0
    assert len(server.calls) == 1


async def test_a_service_that_wants_no_calls_gets_none(server: FaultyServer) -> None:
    server.fault = lambda _: Fault(429, {"retry-after": "1"}, b"{}", paid=False)
    backend = HttpBackend(PAID, server.url)
    await backend.load()

    async def one(left_s: float) -> Answer:
        call = Call(KEY, time.monotonic() + left_s)
        return (await asyncio.to_thread(backend.infer_calls, [ROW], [call]))[0]

    await one(0.5)
    server.fault = lambda _: None
    began = time.monotonic()
    assert "wants no calls for another 1 s" in told(await one(0.3))
    assert len(server.calls) == 1
    assert (await one(5.0)).output == "done"
    assert time.monotonic() - began >= 0.7
    backend.close()


async def test_a_redirect_leads_to_hosts_that_are_allowed(
    server: FaultyServer, other: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEY", "word-of-mouth")
    server.fault = lambda _: Fault(308, {"location": other.url + "/there"}, b"")
    keys, limits = bearer(env="THE_KEY"), Limits(hosts=(host(other),))
    answer = await ask(HttpBackend(PAID, server.url, limits=limits, keys=keys))
    assert answer.output == "from elsewhere"
    (left,), (came,) = server.calls, other.calls
    assert left.headers["authorization"] == "Bearer word-of-mouth"
    assert "authorization" not in came.headers, "a key is for its own host alone"
    assert (came.path, came.method, came.body, came.key) == ("/there", "POST", left.body, KEY)


async def test_a_redirect_without_end(server: FaultyServer) -> None:
    server.fault = lambda _: Fault(307, {"location": server.url}, b"", paid=False)
    answer = await ask(HttpBackend(PAID, server.url, limits=Limits(hosts=(host(server),))))
    assert "redirected more than 3 times" in told(answer)
    assert answer.cost == 0.0
    assert len(server.calls) == 4


async def test_a_redirect_elsewhere_is_not_followed(server: FaultyServer, other: FaultyServer) -> None:
    server.fault = lambda _: Fault(307, {"location": other.url}, b"", paid=False)
    answer = await ask(HttpBackend(PAID, server.url, limits=Limits(hosts=("example.com",))))
    assert "not among those allowed" in told(answer)
    assert other.calls == []


async def test_a_certificate_must_be_one_of_those_trusted(tmp_path: Path) -> None:
    good, bad = self_signed(tmp_path, "good"), self_signed(tmp_path, "bad")
    with faulty(lambda _: 1, good) as secure:
        for ca in (None, str(bad[0])):
            answer = await ask(HttpBackend(PAID, secure.url, limits=Limits(ca_file=ca)))
            assert "certificate that is not trusted" in told(answer)
            assert answer.cost == 0.0
        assert secure.calls == []
        trusting = Limits(ca_file=str(good[0]))
        assert (await ask(HttpBackend(PAID, secure.url, limits=trusting))).error is None
        wrong_name = secure.url.replace("127.0.0.1", "localhost")
        assert "certificate" in told(await ask(HttpBackend(PAID, wrong_name, limits=trusting)))
    for path in (tmp_path / "absent.pem", good[1]):
        with pytest.raises(LoadError, match="ca_file"):
            await ask(HttpBackend(PAID, "https://127.0.0.1", limits=Limits(ca_file=str(path))))


async def test_https_where_http_is_spoken() -> None:
    async def speak(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(speak, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        answer = await ask(HttpBackend(PAID, f"https://127.0.0.1:{port}"))
    assert "TLS" in told(answer)
    assert answer.cost == 0.0


async def test_cookies_are_not_kept(server: FaultyServer) -> None:
    server.fault = lambda _: Fault(headers={"set-cookie": "who=me; path=/"})
    backend = HttpBackend(PAID, server.url)
    await backend.load()
    for _ in range(2):
        await asyncio.to_thread(backend.infer, [ROW])
    backend.close()
    assert [call.headers.get("cookie") for call in server.calls] == [None, None]


async def test_sizes_there_and_back(server: FaultyServer) -> None:
    small = HttpBackend(PAID, server.url, limits=Limits(request_bytes=5))
    answer = await ask(small)
    assert "more than 5 bytes" in told(answer)
    assert answer.cost == 0.0
    assert server.calls == []
    assert "more than 9 bytes" in told(
        await ask(HttpBackend(PAID, server.url, limits=Limits(answer_bytes=9)))
    )


async def test_nothing_is_unpacked(server: FaultyServer) -> None:
    server.fault = lambda _: Fault(headers={"content-encoding": "gzip"}, body=gzip.compress(b'{"output": 1}'))
    assert "answered compressed" in told(await ask(HttpBackend(PAID, server.url)))
    assert server.calls[0].headers["accept-encoding"] == "identity"


async def test_a_key_of_a_file_is_read_anew(server: FaultyServer, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("one\n")
    backend = HttpBackend(PAID, server.url, keys=bearer(file=str(file)))
    await backend.load()
    await asyncio.to_thread(backend.infer, [ROW])
    file.write_text("two\n")
    await asyncio.to_thread(backend.infer, [ROW])
    file.unlink()
    (answer,) = await asyncio.to_thread(backend.infer, [ROW])
    backend.close()
    assert [call.headers["authorization"] for call in server.calls] == ["Bearer one", "Bearer two"]
    assert "its key is not there" in told(answer)
    assert answer.cost == 0.0


@pytest.mark.parametrize("text", ["", "  ", "two\nlines-4111", "4111-\u4e2d", "x" * 20_000, "\x7f4111"])
async def test_what_is_no_key(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", text)
    with pytest.raises(LoadError, match="THE_KEY") as caught:
        await ask(HttpBackend(PAID, "http://127.0.0.1:1", keys=bearer(env="THE_KEY")))
    assert "4111" not in str(caught.value)


async def test_new_keys_never_go_to_the_old_place(
    server: FaultyServer, other: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLD_KEY", "old")
    monkeypatch.setenv("NEW_KEY", "new")
    server.fault = lambda _: Fault(429, {"retry-after": "1"}, b"{}") if len(server.calls) == 1 else None
    backend = HttpBackend(PAID, server.url, keys=bearer(env="OLD_KEY"))
    await backend.load()
    call = Call(KEY, time.monotonic() + 5.0)
    waiting = asyncio.create_task(asyncio.to_thread(backend.infer_calls, [ROW], [call]))
    await asyncio.sleep(0.3)
    backend.point(PAID, other.url, bearer(env="NEW_KEY"))
    assert (await waiting)[0].output == "done"
    (answer,) = await asyncio.to_thread(backend.infer, [ROW])
    backend.close()
    assert answer.output == "from elsewhere"
    assert [call.headers["authorization"] for call in server.calls] == ["Bearer old"] * 2
    assert [call.headers["authorization"] for call in other.calls] == ["Bearer new"]


async def test_keys_are_neither_told_nor_logged(
    server: FaultyServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("THE_KEY", "4111-key")
    backend = build(PAID, {"url": server.url, "headers_env": {"X-Api-Key": "THE_KEY"}})
    for fault in (*FAULTS.values(), Fault()):
        server.fault = lambda _, fault=fault: fault
        answer = await ask(backend, left_s=0.3)
        assert "4111" not in str(answer)
    assert {call.headers["x-api-key"] for call in server.calls} == {"4111-key"}
    assert "4111" not in caplog.text
    assert "a call elsewhere failed: a/b: 127.0.0.1 answered 401" in caplog.text


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({}, "url"),
        ({"url": 3}, "url"),
        ({"url": ""}, "url"),
        ({"timeout_s": "long"}, "timeout_s"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"timeout_s": float("nan")}, "timeout_s"),
        ({"attempts": 1.5}, "attempts"),
        ({"attempts": True}, "attempts"),
        ({"idempotent": "yes"}, "idempotent"),
        ({"redirect_hosts": "example.com"}, "redirect_hosts"),
        ({"redirect_hosts": [1]}, "redirect_hosts"),
        ({"headers_env": {"x key": "A"}}, "header"),
        ({"headers_env": {"x-key": 1}}, "headers_env"),
        ({"verify": False}, "verify"),
    ],
)
def test_options_that_are_none(options: Mapping[str, Any], named: str) -> None:
    given = options if "url" in options or not options else {"url": "https://example.com", **options}
    with pytest.raises(LoadError, match=named):
        build(PAID, given)


def test_keys_stand_in_one_place() -> None:
    with pytest.raises(LoadError, match="not both"):
        bearer(env="A", file="b")
    assert Keys().headers() == {}
    with pytest.raises(LoadError, match="the file b"):
        Keys({"x": Key(file="/no/such/b")}).headers()
