"""What every exchange does, the one in memory as well, on which the tests of gateway and client stand."""

from __future__ import annotations

import asyncio
import time
import uuid

import pytest

from edgeway.errors import ExchangeClosed
from schemas import ids
from schemas.errors import SchemaError
from schemas.messages import Request, Result
from tests.integration.exchange.conftest import Face

pytestmark = pytest.mark.integration
WAIT_S = 10.0


def asked(**fields: object) -> Request:
    return Request(**{"id": uuid.uuid4().hex, "task": "t", "inputs": {"text": "hello"}, **fields})  # type: ignore[arg-type]


def ok(name: str, output: object = None, **fields: object) -> Result:
    return Result(id=name, status="ok", output=output, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("fmt", ["msgpack", "json"])
@pytest.mark.parametrize("tenant", [None, "acme"])
async def test_a_request_gets_its_first_result(face: Face, tenant: str | None, fmt: str) -> None:
    request = asked(id=None, tenant=tenant, inputs={"raw": b"\x00\xff", "list": (1, 2.0)})
    sent = await face.exchange.send(request, fmt=fmt)  # type: ignore[arg-type]
    assert sent.key == ids.scoped(tenant, sent.id)
    assert face.exchange.is_open(sent.key)
    assert face.exchange.known(sent.key) is None
    waiting = [asyncio.ensure_future(face.exchange.answer(who, WAIT_S)) for who in (sent, sent, sent.key)]
    await asyncio.sleep(0)
    for output in (1, 2):
        await face.answerer.reply(ok(sent.id, output, tenant=tenant, digest=sent.digest))
    assert [result.output for result in await asyncio.gather(*waiting)] == [1, 1, 1]
    assert (await face.exchange.answer(sent, WAIT_S)).output == 1
    known = face.exchange.known(sent.key)
    assert known is not None
    assert known.output == 1
    assert not face.exchange.is_open(sent.key)
    assert face.exchange.health().waiting == 0


async def test_a_repeat_has_the_first_ones_answer_and_other_content_a_conflict(face: Face) -> None:
    request = asked()
    other = asked(id=request.id, inputs={"text": "something else"})
    sent = await face.exchange.send(request)
    again, third = await face.exchange.send(request), await face.exchange.send(other)
    assert again == sent
    assert third.digest != sent.digest
    waiting = [asyncio.ensure_future(face.exchange.answer(one, WAIT_S)) for one in (again, third)]
    await face.answerer.reply(ok(sent.id, 1, digest=sent.digest))
    await face.answerer.refuse(other)
    found = await asyncio.gather(*waiting)
    assert found[0].output == 1
    assert found[1].error is not None
    assert found[1].error.code == "id_conflict"
    # The same when it is asked for once more, is looked for in the log, or followed.
    assert (await face.exchange.answer(third, WAIT_S)).id == found[1].id
    for one, output in ((sent, 1), (third, None)):
        earlier = await face.exchange.earlier(one, int(time.time() * 1000) - 60_000)
        assert earlier is not None
        assert earlier.output == output
        *_, last = [event async for event in face.exchange.events(one, timeout_s=WAIT_S)]
        assert (last.kind, last.data["id"], last.data.get("output")) == ("result", request.id, output)


async def test_a_wait_ends_in_time(face: Face) -> None:
    sent = await face.exchange.send(asked())
    with pytest.raises(TimeoutError):
        await face.exchange.answer(sent, 0.05)
    assert face.exchange.health().waiting == 0
    assert face.exchange.is_open(sent.key)


async def test_an_answer_is_found_in_the_log(face: Face) -> None:
    since = int(time.time() * 1000) - 5000
    sent = await face.exchange.send(asked())
    assert await face.exchange.earlier(sent.key, since) is None
    for output in (1, 2):
        await face.answerer.reply(ok(sent.id, output))
    found = await face.exchange.earlier(sent.key, since)
    assert found is not None
    assert found.output == 1
    assert await face.exchange.earlier(sent.key, int(time.time() * 1000) + 60_000) is None


async def test_the_events_of_a_request_end_with_its_result(face: Face) -> None:
    sent = await face.exchange.send(asked())
    events = face.exchange.events(sent.key)
    first = await anext(events)
    assert (first.kind, first.data) == ("accepted", {"id": sent.id, "tenant": None})
    await face.answerer.reply(ok(sent.id, {"raw": b"\x01"}))
    rest = [event async for event in events]
    assert [event.kind for event in rest] == ["result"]
    assert rest[0].data["output"] == {"raw": "AQ=="}
    assert face.exchange.health().waiting == 0


async def test_events_end_without_a_result_in_time(face: Face) -> None:
    sent = await face.exchange.send(asked())
    assert [event.kind async for event in face.exchange.events(sent.key, timeout_s=0.1)] == ["accepted"]


async def test_what_cannot_be_written_is_not(face: Face) -> None:
    request = asked(inputs={"text": "\ud800"})
    with pytest.raises(SchemaError):
        await face.exchange.send(request)
    assert not face.exchange.is_open(request.id or "")


async def test_it_is_healthy_and_closing_fails_all_that_wait(face: Face) -> None:
    assert face.exchange.is_healthy
    assert face.exchange.health().ok
    sent = await face.exchange.send(asked())
    waiting = asyncio.ensure_future(face.exchange.answer(sent, WAIT_S))
    events = face.exchange.events(sent.key)
    assert (await anext(events)).kind == "accepted"
    listening = asyncio.ensure_future(anext(events))
    await asyncio.sleep(0.05)
    await face.exchange.__aexit__(None, None, None)  # type: ignore[attr-defined]
    for task in (waiting, listening):
        with pytest.raises(ExchangeClosed):
            await task
    with pytest.raises(ExchangeClosed):
        await face.exchange.send(asked())
    with pytest.raises(ExchangeClosed):
        await face.exchange.cancel("a")
    assert not face.exchange.is_healthy
