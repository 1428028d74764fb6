"""What every client does, over Kafka and over HTTP alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import pytest

from edgeway.client import (
    BadInput,
    ClientClosed,
    Overloaded,
    RequestCancelled,
    RequestTimeout,
    output_as,
    raise_for_error,
    result_of,
)
from schemas.errors import SchemaError
from schemas.messages import Request, Result
from tests.helpers.clients import FACES, LossyExchange, failed
from tests.helpers.exchange import MemoryExchange, echo


@pytest.fixture(params=sorted(FACES))
def face(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Makes a client on an exchange."""
    return FACES[request.param]


async def never(_request: Request) -> None:
    return None


async def test_a_request_is_answered(face: Any) -> None:
    exchange = MemoryExchange()
    async with face(exchange) as client:
        result = await client.route(task="intent", inputs={"text": "where is my card", "raw": b"\0\xff"})
    assert result.status == "ok"
    assert result.output == {"text": "where is my card", "raw": b"\0\xff"}
    (sent,) = exchange.sent
    assert (sent.task, sent.id) == ("intent", result.id)


async def test_all_that_is_asked_is_sent(face: Any) -> None:
    exchange = MemoryExchange()
    said = {"query": "report", "inputs": {"a": 1}, "params": {"b": 2}, "id": "x 1/ü", "tenant": "acme"}
    said |= {"privacy": "high", "deadline_ms": 5000, "max_cost": 0.5}
    async with face(exchange) as client:
        result = await client.route(**said)
    assert result.id == "x 1/ü"
    assert {name: getattr(exchange.sent[0], name) for name in said} == said


async def test_a_client_asks_for_its_tenant(face: Any) -> None:
    exchange = MemoryExchange()
    async with face(exchange, tenant="acme") as client:
        first = await client.route("t", id="1")
        assert (await client.result("1")).tenant == first.tenant == "acme"
        await client.cancel("2")
    assert exchange.cancelled[0].tenant == "acme"


async def test_an_error_is_a_result(face: Any) -> None:
    async def script(request: Request) -> Result:
        return failed(request, request.inputs["code"], "no such thing")

    async with face(MemoryExchange(script)) as client:
        for code, kind in (
            ("bad_input", BadInput),
            ("overloaded", Overloaded),
            ("cancelled", RequestCancelled),
        ):
            result = await client.route("t", inputs={"code": code})
            assert result.error is not None
            assert (result.status, result.error.code) == ("error", code)
            with pytest.raises(kind, match="no such thing") as caught:
                raise_for_error(result)
            assert caught.value.result is result
            with pytest.raises(kind):
                output_as(result, dict)


async def test_what_is_no_request_is_sent_nowhere(face: Any) -> None:
    exchange = MemoryExchange()
    wrong: list[dict[str, Any]] = [
        {},
        {"task": "t", "id": ""},
        {"task": "t", "id": "x" * 129},
        {"task": "t", "deadline_ms": 0},
        {"task": "t", "privacy": "some"},
        {"task": "t", "inputs": ["a"]},
        {"task": "t", "tenant": "\x1f"},
        {"task": "t", "inputs": {"x": "y" * 3_000_000}},
        {"task": "t", "inputs": {"x": object()}},
    ]
    async with face(exchange) as client:
        for each in wrong:
            with pytest.raises(SchemaError):
                await client.route(**each)
        with pytest.raises(TypeError, match="no such argument: input;"):
            await client.route("t", input={})
    assert exchange.sent == []


async def test_submit_returns_before_the_answer(face: Any) -> None:
    exchange = MemoryExchange(never)
    async with face(exchange) as client:
        pending = await client.submit("t", inputs={"a": 1}, id="p1")
        assert (pending.id, pending.done(), len(exchange.sent)) == ("p1", False, 1)
        with pytest.raises(RequestTimeout, match="p1"):
            await pending.result(0.05)
        exchange.reply(Result(id="p1", status="ok", output=7))
        assert (await pending).output == 7
        assert (await pending.result()).output == 7
        assert pending.done()


async def test_a_pending_request_is_cancelled(face: Any) -> None:
    async with face(MemoryExchange(never)) as client:
        pending = await client.submit("t", id="p2")
        await pending.cancel()
        result = await pending
        assert result.error is not None
        assert result.error.code == "cancelled"
        await client.cancel("never-sent")


async def test_a_wait_that_ends_names_the_id_and_can_be_gone_on_with(face: Any) -> None:
    exchange = MemoryExchange(never)
    async with face(exchange) as client:
        with pytest.raises(RequestTimeout, match=r"result\('r1'\)") as caught:
            await client.route("t", id="r1", timeout_s=0.1)
        assert isinstance(caught.value, TimeoutError)
        assert caught.value.id == "r1"
        later = asyncio.create_task(client.result("r1", timeout_s=5))
        await asyncio.sleep(0.05)
        exchange.reply(Result(id="r1", status="ok", output=1))
        assert (await later).output == 1
        assert (await client.result("r1")).output == 1
    assert len(exchange.sent) == 1


async def test_two_calls_at_once_with_one_id_are_one_request(face: Any) -> None:
    exchange = MemoryExchange(never)
    async with face(exchange) as client:
        calls = [asyncio.create_task(client.route("t", inputs={"a": 1}, id="same")) for _ in range(3)]
        other = asyncio.create_task(client.route("t", inputs={"a": 2}, id="same"))
        await asyncio.sleep(0.1)
        calls[0].cancel()
        await asyncio.sleep(0.05)
        exchange.reply(Result(id="same", status="ok", output="one"))
        assert [(await call).output for call in calls[1:]] == ["one", "one"]
        conflict = await other
        assert conflict.error is not None
        assert (conflict.id, conflict.error.code) == ("same", "id_conflict")
    assert [request.inputs["a"] for request in exchange.sent].count(1) == 1


async def test_an_id_that_was_answered_before_has_its_answer(face: Any) -> None:
    """An id and content used again is not answered again: by another client, or before a restart."""
    exchange = MemoryExchange()
    await exchange.send(Request(id="old", task="t", inputs={"a": 1}))
    await asyncio.sleep(0.01)
    async with face(exchange) as client:
        if face is FACES["kafka"]:
            exchange.forget("old")
        result = await client.route("t", inputs={"a": 1}, id="old", timeout_s=5)
        assert result.output == {"a": 1}
        assert (await client.result("old", timeout_s=5)).output == {"a": 1}


async def test_a_send_of_unknown_outcome_is_repeated_under_its_id_and_runs_once(face: Any) -> None:
    ran = []

    async def script(request: Request) -> Result:
        ran.append(request.id)
        await asyncio.sleep(0.1)
        return await echo(request)

    exchange = LossyExchange(script)
    exchange.losses = 2
    async with face(exchange) as client:
        result = await client.route("t", inputs={"a": 1})
        exchange.losses = 2
        pending = await client.submit("t", inputs={"a": 2})
        assert (await pending).output == {"a": 2}
    assert result.output == {"a": 1}
    assert ran == [result.id, pending.id]
    assert {request.id for request in exchange.sent} == set(ran)


async def test_events_are_told_up_to_the_result(face: Any) -> None:
    exchange = MemoryExchange(never)
    async with face(exchange) as client:
        kinds = []
        async with aclosing(client.stream("t", inputs={"a": 1}, id="s1")) as events:
            async for event in events:
                kinds.append(event.kind)
                if event.kind == "accepted":
                    exchange.tell("s1", "partial", {"step": "x", "text": "a\u2028b"})
                    exchange.reply(Result(id="s1", status="ok", output=[1, 2]))
        assert kinds == ["accepted", "partial", "result"]
        assert result_of(event).output == [1, 2]
        with pytest.raises(ValueError, match="holds no result"):
            result_of(event._replace(kind="partial"))


async def test_a_stream_ends_in_time_and_may_be_left(face: Any) -> None:
    exchange = MemoryExchange(never)
    async with face(exchange) as client:
        with pytest.raises(RequestTimeout, match="s2"):
            async for _event in client.stream("t", id="s2", timeout_s=0.2):
                pass
        async with aclosing(client.stream("t", id="s3")) as events:
            assert (await anext(events)).kind == "accepted"
        assert exchange.cancelled == []


async def test_map_keeps_the_order_and_survives_what_fails(face: Any) -> None:
    async def script(request: Request) -> Result | None:
        number = request.inputs["n"]
        await asyncio.sleep(0.02 if number % 2 == 0 else 0)
        if number == 3:
            return failed(request, "bad_input")
        return None if number == 4 else Result(id=request.id or "", status="ok", output=number)

    inputs: list[Any] = [{"n": n} for n in range(6)] + [{"n": object()}, 5]
    async with face(MemoryExchange(script)) as client:
        results = [r async for r in client.map(inputs, "t", concurrency=3, timeout_s=0.3, progress=True)]
        assert [r.output for r in results] == [0, 1, 2, None, None, 5, None, None]
        codes = [r.error.code if r.error else None for r in results]
        assert codes == [None, None, None, "bad_input", "unanswered", None, "malformed", "malformed"]
        assert results[4].error is not None
        assert results[4].id in results[4].error.message


async def test_map_as_they_come_and_by_ids(face: Any) -> None:
    async def script(request: Request) -> Result:
        await asyncio.sleep(request.inputs["n"] * 0.05)
        return await echo(request)

    exchange = MemoryExchange(script)

    async def inputs() -> AsyncIterator[dict[str, int]]:
        for number in (4, 0, 2, 0):
            yield {"n": number}

    async with face(exchange) as client:
        results = client.map(inputs(), "t", ids=lambda item: f"n{item['n']}", ordered=False, concurrency=9)
        assert [r.id async for r in results] == ["n0", "n0", "n2", "n4"]
    assert len(exchange.sent) == 3


async def test_map_reads_no_further_than_it_may_and_ends_cleanly(face: Any) -> None:
    exchange = MemoryExchange(never)
    read = 0

    def inputs() -> Any:
        nonlocal read
        while True:
            read += 1
            yield f"text {read}"

    async with face(exchange) as client:
        mapping = asyncio.create_task(anext(client.map(inputs(), "t", concurrency=5)))
        while len(exchange.sent) < 5:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        assert (read, len(exchange.sent)) == (5, 5)
        mapping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await mapping
        async with asyncio.timeout(2):
            while len(client._waits):
                await asyncio.sleep(0.01)
    assert exchange.cancelled == []
    assert exchange.sent[0].inputs == {"text": "text 1"}


async def test_closing_ends_every_wait(face: Any) -> None:
    async with face(MemoryExchange(never)) as client:
        call = asyncio.create_task(client.route("t"))
        mapping = asyncio.create_task(anext(client.map(["a"], "t")))
        pending = await client.submit("t")
        await client.close()
        for each in (call, mapping, pending.result()):
            with pytest.raises(ClientClosed):
                await each
        for again in (client.route("t"), client.submit("t"), client.result("x"), client.cancel("x")):
            with pytest.raises(ClientClosed, match="not open"):
                await again


async def test_many_at_once_have_each_their_own_answer(face: Any) -> None:
    async with face(MemoryExchange()) as client:
        results = await asyncio.gather(*(client.route("t", inputs={"n": n}) for n in range(100)))
    assert [r.output["n"] for r in results] == list(range(100))


async def test_an_id_that_was_used_before_has_the_answer_of_then_or_a_conflict(face: Any) -> None:
    exchange = MemoryExchange()

    async def last(client: Any, inputs: dict[str, int]) -> Result:
        events = [event async for event in client.stream("t", inputs=inputs, id="old", timeout_s=5)]
        return result_of(events[-1])

    async with face(exchange) as client:
        assert (await client.route("t", inputs={"a": 1}, id="old")).output == {"a": 1}
        conflict = await client.route("t", inputs={"a": 2}, id="old")
        # Answered once, as all: another client, later, finds both in the log alone.
        for key in [*exchange._answers]:
            exchange.forget(key)
        again = await client.route("t", inputs={"a": 2}, id="old", timeout_s=5)
        for found in (conflict, again, await last(client, {"a": 2})):
            assert found.error is not None
            assert (found.id, found.error.code) == ("old", "id_conflict")
        assert (await last(client, {"a": 1})).output == {"a": 1}


@pytest.mark.parametrize("id_of", [lambda item: item["name"], lambda item: next(iter(item["names"]))])
async def test_an_input_without_an_id_fails_alone(face: Any, id_of: Any) -> None:
    inputs = [
        {"name": "a", "names": "a"},
        {"names": ""},
        {"name": 7, "names": [7]},
        {"name": "b", "names": "b"},
    ]
    async with face(MemoryExchange()) as client:
        results = [r async for r in client.map(inputs, "t", ids=id_of)]
    assert [r.status for r in results] == ["ok", "error", "error", "ok"]
    assert [r.error.code for r in results if r.error] == ["malformed", "malformed"]
    assert (results[0].id, results[3].id) == ("a", "b")


@pytest.mark.parametrize(
    ("request_id", "tenant"), [("", None), ("x" * 129, None), ("\ud800", None), (7, None), ("a", "b c")]
)
async def test_what_no_request_has_is_not_asked_for(face: Any, request_id: Any, tenant: Any) -> None:
    exchange = MemoryExchange()
    async with face(exchange) as client:
        with pytest.raises(SchemaError):
            await client.result(request_id, 1, tenant=tenant)
        with pytest.raises(SchemaError):
            await client.cancel(request_id, tenant=tenant)
        with pytest.raises(SchemaError, match="timeout_s is a number"):
            await client.route("t", timeout_s="5")
    assert (exchange.cancelled, exchange.sent) == ([], [])
