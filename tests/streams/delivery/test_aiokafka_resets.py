"""Connections reset by a broker under uvloop, on real sockets."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop
from aiokafka import errors as kafka
from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.conn import AIOKafkaConnection
from aiokafka.protocol.metadata import MetadataRequest

from streams.delivery.drivers.aiokafka_client import is_away

ABORT = struct.pack("ii", 1, 0)
KINDS = {18: (0, 0), 3: (0, 5)}
"""ApiVersions and Metadata, and the versions of each."""


@asynccontextmanager
async def reset_after_greeting() -> AsyncIterator[AIOKafkaConnection]:
    """A connection to a broker that resets it as soon as it has told its versions."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        request = await reader.readexactly(size)
        body = struct.pack(">hi", 0, len(KINDS))
        for kind, versions in KINDS.items():
            body += struct.pack(">hhh", kind, *versions)
        answer = request[4:8] + body
        writer.write(struct.pack(">i", len(answer)) + answer)
        await writer.drain()
        await asyncio.sleep(0.05)
        made = writer.get_extra_info("socket")
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    connection = AIOKafkaConnection("127.0.0.1", server.sockets[0].getsockname()[1])
    await connection.connect()
    try:
        yield connection
    finally:
        connection.close()
        server.close()


async def writes_around_a_reset() -> list[BaseException | None]:
    """What becomes of a request that is written in each of the turns of the loop in which one is reset."""
    async with reset_after_greeting() as connection:
        writer = connection._writer
        while not writer.transport.is_closing():
            await asyncio.sleep(0)
        tasks = []
        for _ in range(10):
            tasks.append(asyncio.ensure_future(ask(connection)))
            await asyncio.sleep(0)
        return [(await asyncio.gather(task, return_exceptions=True))[0] for task in tasks]


async def ask(connection: AIOKafkaConnection) -> None:
    await connection.send(MetadataRequest([]))


def test_a_write_to_a_connection_that_was_reset_is_a_lost_connection() -> None:
    outcomes = uvloop.run(writes_around_a_reset())
    assert {type(outcome) for outcome in outcomes} == {kafka.KafkaConnectionError}
    # One of them at least was written to the closed transport, for which uvloop has an error of its own.
    assert any(isinstance(outcome.__cause__, RuntimeError) for outcome in outcomes if outcome)


def test_what_uvloop_says_of_a_closed_transport_is_known() -> None:
    async def said() -> BaseException:
        async with reset_after_greeting() as connection:
            transport = connection._writer.transport
            while not transport.is_closing():
                await asyncio.sleep(0)
            while True:
                try:
                    transport.write(b"x")
                except RuntimeError as error:
                    return error
                await asyncio.sleep(0)

    error = uvloop.run(said())
    assert type(error) is RuntimeError
    assert is_away(error)


@pytest.mark.parametrize("other", [RuntimeError("a bug"), KeyError("a bug"), AssertionError()])
def test_bugs_are_no_absence(other: Exception) -> None:
    assert not is_away(other)


async def test_a_timeout_on_a_connection_that_was_thrown_away_stays_a_timeout() -> None:
    client = AIOKafkaClient(bootstrap_servers="127.0.0.1:1")
    place = (1, ConnectionGroup.DEFAULT)

    class Connection:
        def connected(self) -> bool:
            return True

        async def send(self, _request: Any, expect_response: bool) -> None:
            del client._conns[place]
            raise TimeoutError

    client._conns[place] = Connection()
    with pytest.raises(kafka.RequestTimedOutError):
        await client.send(1, MetadataRequest([]))


async def test_another_missing_key_stays_one() -> None:
    client = AIOKafkaClient(bootstrap_servers="127.0.0.1:1")

    class Connection:
        def connected(self) -> bool:
            return True

        async def send(self, _request: Any, expect_response: bool) -> None:
            raise KeyError("a bug")

    client._conns[1, ConnectionGroup.DEFAULT] = Connection()
    with pytest.raises(KeyError, match="a bug"):
        await client.send(1, MetadataRequest([]))
