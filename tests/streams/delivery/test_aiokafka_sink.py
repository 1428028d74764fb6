"""The sink where the client fails in ways of its own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from streams.delivery.drivers.aiokafka_sink import AiokafkaSink
from streams.delivery.errors import Unavailable
from streams.delivery.records import Outgoing, Place


class Batch:
    def append(self, **_record: Any) -> object:
        return object()


class DeadSender:
    """A producer whose sender died: what it holds ends with what killed the sender."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def create_batch(self) -> Batch:
        return Batch()

    async def send_batch(self, _batch: Batch, _topic: str, *, partition: int) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.set_exception(self._error)
        return future


async def write_on(error: BaseException) -> None:
    sink = AiokafkaSink({})
    sink._producer = DeadSender(error)
    await sink.write(Place("out", 0), [Outgoing("out", b"k", b"v")], 1.0)


@pytest.mark.parametrize("error", [KeyError("a batch"), AttributeError("done"), RuntimeError("closed")])
async def test_whatever_killed_the_sender_is_an_unknown_outcome(error: Exception) -> None:
    with pytest.raises(Unavailable, match=type(error).__name__):
        await write_on(error)


async def test_a_producer_that_cannot_even_stop_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []

    class Client:
        async def close(self) -> None:
            closed.append("closed")

    class Accumulator:
        _batches: dict[str, list[Any]] = {}
        _pending_batches: set[Any] = set()

        def fail_all(self, _error: BaseException) -> None:
            """Nothing is held."""

    class Broken(DeadSender):
        client = Client()
        _message_accumulator = Accumulator()

        async def stop(self) -> None:
            raise self._error

    async def start(self: AiokafkaSink) -> None:
        self._producer = DeadSender(KeyError())

    monkeypatch.setattr(AiokafkaSink, "start", start)
    sink = AiokafkaSink({})
    sink._producer = broken = Broken(KeyError("a batch"))
    await sink.replace()
    assert closed == ["closed"]
    assert sink._producer is not broken


async def test_a_cancellation_stays_one() -> None:
    with pytest.raises(asyncio.CancelledError):
        await write_on(asyncio.CancelledError())
