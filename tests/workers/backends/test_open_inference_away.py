"""An Open Inference server that is away when a worker starts, comes up late, or fails: who is told."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.helpers import inference_server as fake
from tests.helpers.faulty_server import FAULTS as SERVER_FAULTS
from tests.helpers.faulty_server import Fault, FaultyServer, faulty
from tests.helpers.inference_server import Refused, grpc_server
from tests.helpers.redis import free_port
from tests.workers.backends.test_open_inference import asked, doubled, loaded, rows
from workers.backends import Waits
from workers.backends.open_inference import OpenInferenceBackend
from workers.errors import Away, LoadError
from workers.faults import FAULTS


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks for a server that was away come soon, and faults are logged anew in each test."""
    monkeypatch.setattr("workers.backends.open_inference.AGAIN_S", 0.05)
    monkeypatch.setattr(FAULTS, "_kinds", {})


@pytest.fixture
def rest() -> Iterator[FaultyServer]:
    with faulty(fake.rest_answer) as started:
        yield started


async def there(backend: OpenInferenceBackend) -> None:
    async with asyncio.timeout(10):
        while backend.waits_for:
            await asyncio.sleep(0.02)


@pytest.fixture(params=["rest", "grpc"])
def server(request: pytest.FixtureRequest) -> Iterator[Any]:
    with faulty(fake.rest_answer) if request.param == "rest" else grpc_server() as started:
        yield started


async def test_a_server_that_is_away_at_the_start_is_taken_up_once_it_is_there(
    server: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    server.stop()
    backend = await loaded(server.url, max_cost=1.0, ready_s=0)
    try:
        assert isinstance(backend, Waits)
        assert "cannot be reached" in backend.waits_for
        for answer in await asked(backend, rows(1, 2)):
            assert answer.error is not None
            assert answer.error.code == "backend_error"
            assert "cannot be reached" in answer.error.message
            assert answer.cost == 0.0
        assert "a call elsewhere failed" in caplog.text
        server.start()
        await there(backend)
        assert doubled(await asked(backend, rows(1, 2))) == [2.0, 4.0]
        assert backend.provider == "fake 1"
        assert "is there now" in caplog.text
    finally:
        backend.close()


async def test_a_server_that_is_away_holds_no_thread_once_the_backend_is_closed() -> None:
    before = set(threading.enumerate())
    backend = await loaded(f"grpc://127.0.0.1:{free_port()}", ready_s=0)
    assert any(thread.name == "math/double waits" for thread in threading.enumerate())
    backend.close()
    assert backend.waits_for == ""
    async with asyncio.timeout(5):
        while any(thread.name.startswith("math/double") for thread in set(threading.enumerate()) - before):
            await asyncio.sleep(0.02)


async def test_what_comes_up_wrong_is_told_and_looked_at_again(
    rest: FaultyServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Also later it is served only as its options say."""
    rest.fault = lambda _: Fault(status=503)
    backend = await loaded(rest.url, ready_s=0, inputs={"v": "image"})
    try:
        assert "not ready" in backend.waits_for
        rest.fault = lambda _: None
        async with asyncio.timeout(10):
            while "no input 'image'" not in backend.waits_for:
                await asyncio.sleep(0.02)
        (answer,) = await asked(backend, rows(1))
        assert answer.error is not None
        assert "no input 'image'" in answer.error.message
    finally:
        backend.close()


@pytest.mark.parametrize("status", [401, 404])
async def test_a_refusal_is_no_server_that_is_away(rest: FaultyServer, status: int) -> None:
    rest.fault = lambda asked: Fault(status=status)
    with pytest.raises(LoadError, match=str(status)) as caught:
        await loaded(rest.url, ready_s=0)
    assert not isinstance(caught.value, Away)


async def test_failures_elsewhere_are_in_the_log(server: Any, caplog: pytest.LogCaptureFixture) -> None:
    backend = await loaded(server.url, max_cost=1.0)

    def fault(_: Any) -> Fault:
        if isinstance(server, FaultyServer):
            return SERVER_FAULTS["500"]
        raise Refused("INTERNAL", "4111-1111-secret")

    server.fault = fault
    try:
        await asked(backend, rows(1, 2))
    finally:
        backend.close()
    assert "a call elsewhere failed: math/double: 127.0.0.1" in caplog.text
    assert "secret" not in caplog.text
