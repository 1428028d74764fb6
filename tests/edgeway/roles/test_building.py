"""Building a process: what was made is closed where that fails, and `up` is ready once it hears itself."""

from __future__ import annotations

import asyncio
import gc
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from edgeway.errors import PortTaken, UsageError
from edgeway.roles import up
from edgeway.roles.door import bound, door
from edgeway.roles.process import Process
from edgeway.roles.router import add_router
from edgeway.roles.serving import built, serve
from edgeway.roles.worker import add_worker
from schemas.cards import Card, Heartbeat, Offer
from schemas.rules import parse_rules
from streams.registry import Registry
from streams.settings import Settings
from tests.helpers.redis import free_port
from workers.backends.function import FunctionBackend

RULES = parse_rules(b"{}")
OFFER = Offer(card=Card(capability="x/y", side="local", version="1", model="m"))
NOWHERE = Settings(kafka="127.0.0.1:1")


async def _nothing_unclosed(caplog: pytest.LogCaptureFixture) -> None:
    gc.collect()
    await asyncio.sleep(0)
    assert "Unclosed" not in caplog.text


async def test_a_role_that_cannot_be_built_leaves_no_client_open(caplog: pytest.LogCaptureFixture) -> None:
    def add(process: Process) -> None:
        add_router(process)
        raise UsageError("no")

    with pytest.raises(UsageError):
        await built("test", NOWHERE, RULES, add)
    await _nothing_unclosed(caplog)


async def test_a_port_that_was_taken_meanwhile_leaves_no_client_open(
    caplog: pytest.LogCaptureFixture,
) -> None:
    listener = bound("127.0.0.1", 0)
    listener.listen()
    settings = Settings(kafka="127.0.0.1:1", port=listener.getsockname()[1])
    with pytest.raises(PortTaken):
        await serve(await built("test", settings, RULES, lambda process: add_router(process) and None))
    listener.close()
    await _nothing_unclosed(caplog)


class Away(FunctionBackend):
    waits_for = "host:8000: it cannot be reached"


@pytest.mark.parametrize("http", [True, False])
async def test_what_waits_for_its_service_is_told_whatever_the_role(http: bool) -> None:
    """`up` answers no calls over HTTP, but says at its port how it is."""

    def add(process: Process) -> None:
        add_worker(process, [Away(OFFER.card, lambda inputs, params: 1)], http=http)

    settings = Settings(kafka="127.0.0.1:1", port=free_port())
    process = await built("test", settings, RULES, add)
    try:
        shown = process.shared["health"]()
        assert shown["waits_for"] == {"local/x/y": Away.waits_for}
        asked = TestClient(door(lambda: {**shown, "ready": True}, metrics=False)).get("/readyz")
        assert (asked.status_code, asked.json()["waits_for"]) == (200, shown["waits_for"])
    finally:
        await process.stop()


@pytest.mark.parametrize("heard", [True, False])
async def test_up_is_ready_once_the_router_has_heard_its_workers(
    heard: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    steps: list[Any] = []
    registry = Registry()
    monkeypatch.setattr(up, "add_worker", lambda *_: "me")
    monkeypatch.setattr(up, "add_aggregator", lambda _: None)
    monkeypatch.setattr(up, "add_router", lambda _: registry)
    monkeypatch.setattr(up, "HEARD_S", 5.0 if heard else 0.1)
    process = SimpleNamespace(once_ready=steps, settings=Settings())
    up.add_all(process, [SimpleNamespace()])  # type: ignore[arg-type, list-item]
    waiting = asyncio.ensure_future(steps[0]())
    await asyncio.sleep(0.05)
    registry.observe(Heartbeat(worker="other", offers=(OFFER,), started=0), 1)
    registry.observe(Heartbeat(worker="me", offers=(), started=0), 1)
    await asyncio.sleep(0.03)
    assert not waiting.done()
    if heard:
        registry.observe(Heartbeat(worker="me", offers=(OFFER,), started=0), 2)
    await asyncio.wait_for(waiting, 2.0)
    assert ("has not heard the workers" in caplog.text) is not heard
