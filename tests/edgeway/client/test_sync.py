"""The clients without an event loop."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from edgeway.client import ClientClosed, RequestTimeout, SyncClient
from edgeway.client.caller import Caller
from edgeway.client.over_kafka import OverKafka
from edgeway.client.quiet import spare_the_log
from edgeway.client.sync import SyncCaller
from edgeway.errors import UsageError
from schemas.errors import SchemaError
from schemas.messages import Request, Result
from tests.helpers.clients import RETRIES, FakeClock, failed
from tests.helpers.exchange import MemoryExchange, echo

ROOT = Path(__file__).parents[3]


async def never(_request: Request) -> None:
    return None


def made(exchange: Any) -> SyncCaller:
    clock = FakeClock()
    way = OverKafka(lambda: exchange, RETRIES, lambda: 0.5, clock, fresh_s=0.05)
    return SyncCaller(lambda: Caller(way, "memory", clock))


@pytest.fixture
def exchange() -> MemoryExchange:
    return MemoryExchange()


@pytest.fixture
def client(exchange: MemoryExchange) -> Iterator[SyncCaller]:
    with made(exchange) as found:
        yield found


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("edgeway-client")]


def test_the_same_face(client: SyncCaller, exchange: MemoryExchange) -> None:
    assert client.route(task="t", inputs={"a": 1}).output == {"a": 1}
    pending = client.submit("t", id="p", inputs={"a": 2})
    assert (pending.id, pending.result().output, pending.done()) == ("p", {"a": 2}, True)
    assert client.result("p").output == {"a": 2}
    assert [event.kind for event in client.stream("t")] == ["accepted", "result"]
    client.cancel("other")
    pending.cancel()
    assert [cancel.id for cancel in exchange.cancelled] == ["other", "p"]
    with pytest.raises(SchemaError):
        client.route()
    assert "open" in repr(client)


def test_timeouts_name_the_id(client: SyncCaller, exchange: MemoryExchange) -> None:
    exchange.script = never
    with pytest.raises(RequestTimeout, match="mine"):
        client.route("t", id="mine", timeout_s=0.05)
    with pytest.raises(RequestTimeout):
        list(client.stream("t", timeout_s=0.05))


def test_an_input_without_an_id_fails_alone(client: SyncCaller) -> None:
    names = iter("ab")
    results = list(client.map(["1", "2", "3"], "t", ids=lambda _text: next(names)))
    assert [(r.status, r.output) for r in results] == [
        ("ok", {"text": "1"}),
        ("ok", {"text": "2"}),
        ("error", None),
    ]


@pytest.mark.parametrize("ordered", [True, False])
def test_map(client: SyncCaller, exchange: MemoryExchange, ordered: bool) -> None:
    async def script(request: Request) -> Result:
        number = int(request.inputs["text"])
        await asyncio.sleep(0.01 * (number % 3))
        return failed(request, "bad_input") if number == 7 else await echo(request)

    exchange.script = script
    read = given_out = 0

    def inputs() -> Iterator[str]:
        nonlocal read
        for number in range(30):
            read += 1
            assert read - given_out <= 4
            assert threading.current_thread() is threading.main_thread()
            yield str(number)
        raise OSError("the file broke")

    found = []
    results = client.map(inputs(), "t", ids=lambda text: f"i{text}", concurrency=4, ordered=ordered)

    def take() -> None:
        nonlocal given_out
        for result in results:
            given_out += 1
            found.append(result.id)

    with pytest.raises(OSError, match="the file broke"):
        take()
    expected = [f"i{number}" for number in range(30)]
    assert (found if ordered else sorted(found)) == (expected if ordered else sorted(expected))


def test_leaving_a_map_early_ends_its_waits(client: SyncCaller, exchange: MemoryExchange) -> None:
    async def script(request: Request) -> Result | None:
        return await echo(request) if request.inputs["text"] == "0" else None

    exchange.script = script
    for result in client.map(map(str, range(100)), "t", concurrency=8):
        assert result.output == {"text": "0"}
        break
    gc.collect()
    until = time.monotonic() + 2
    while len(client._client._waits) and time.monotonic() < until:
        time.sleep(0.01)
    assert len(client._client._waits) == 0
    assert exchange.cancelled == []


def test_several_threads_share_one_client(exchange: MemoryExchange) -> None:
    client = made(exchange)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: client.route("t", inputs={"n": n}).output["n"], range(200)))
    assert found == list(range(200))
    assert len(threads()) == 1
    client.close()
    assert threads() == []


async def test_it_works_inside_a_running_loop(exchange: MemoryExchange) -> None:
    with made(exchange) as client:
        assert client.route("t", inputs={"a": 1}).output == {"a": 1}


def test_closing_ends_calls_in_other_threads_and_can_be_repeated(exchange: MemoryExchange) -> None:
    exchange.script = never
    client = made(exchange)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(client.route, "t")
        while not exchange.sent:
            time.sleep(0.01)
        client.close()
        with pytest.raises(ClientClosed):
            call.result(5)
    client.close()
    assert exchange.closed
    with pytest.raises(ClientClosed):
        client.route("t")
    made(MemoryExchange()).close()
    assert threads() == []


def test_a_client_that_nobody_refers_to_ends(exchange: MemoryExchange) -> None:
    client = made(exchange)
    client.route("t")
    assert len(threads()) == 1
    del client
    gc.collect()
    until = time.monotonic() + 5
    while threads() and time.monotonic() < until:
        time.sleep(0.01)
    assert threads() == []
    assert exchange.closed


def test_a_forked_child_is_told_to_make_its_own(client: SyncCaller) -> None:
    client.route("t")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            client.route("t")
            os.write(writer, b"it answered")
        except ClientClosed as exc:
            client.close()
            os.write(writer, str(exc).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as said:
        assert "make one there, after the fork" in said.read()
    assert client.route("t").status == "ok"


def test_a_process_ends_cleanly_without_close() -> None:
    code = (
        "from tests.edgeway.client.test_sync import *\n"
        "class Told(MemoryExchange):\n"
        "    async def __aexit__(self, *args):\n"
        "        await super().__aexit__(*args)\n"
        "        print('closed')\n"
        "client = made(Told(never))\n"
        "client.submit('t')\n"
        "results = made(MemoryExchange()).map(['a'] * 9, 't', concurrency=2)\n"
        "print(next(results).output)\n"
    )
    argv = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split("\n")[:2] == ["{'text': 'a'}", "closed"]


def test_a_wrong_url_is_told_at_once() -> None:
    with pytest.raises(UsageError):
        SyncClient("redis://host")


def test_a_stream_that_is_left_open_ends_with_its_client(exchange: MemoryExchange) -> None:
    exchange.script = never
    with made(exchange) as client:
        events = client.stream("t")
        assert next(events).kind == "accepted"
    # Its end says nothing more, be it by hand or when nobody refers to it.
    events.close()
    assert list(events) == []


def test_a_fork_in_the_middle_of_a_call_leaves_a_child_that_can_end(client: SyncCaller) -> None:
    client.open()
    with client._thread._lock:
        child = os.fork()
        if child == 0:
            client.close()
            os._exit(7)
    until = time.monotonic() + 10
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < until:
        time.sleep(0.01)
    if ended[0] == 0:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(ended[1]) == 7


def test_the_kafka_client_says_the_same_once(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("aiokafka.of_a_test")
    spare_the_log()
    spare_the_log()
    for _ in range(3):
        logger.error("no broker")
    logging.getLogger("mine").error("no broker")
    assert [record.name for record in caplog.records] == ["aiokafka.of_a_test", "mine"]
