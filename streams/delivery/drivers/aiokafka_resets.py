"""Connections that a broker reset, as aiokafka expects them to fail."""

from __future__ import annotations

from typing import Any

from aiokafka import errors as kafka
from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.conn import AIOKafkaConnection, CloseReason


def mend() -> None:
    """Let every aiokafka client of this process see a lost connection as KafkaConnectionError; may be called
    again.

    On uvloop a write to a transport that has been closed raises RuntimeError, which asyncio's does not. It
    is closed a few turns of the loop before aiokafka hears of it, and in a busy process something writes in
    between. aiokafka expects OSError there and catches KafkaError above it, so that RuntimeError ended
    whatever wrote: the heartbeat (the member was put out), the fetcher (every poll empty, for ever), the
    synchronizer of metadata (each wait for a new leader hung), the sender. It was seen in every role when a
    broker was killed under load.
    """
    if AIOKafkaConnection.send is not _send:
        AIOKafkaConnection.send = _send
        AIOKafkaClient.send = _send_to


_plain_send = AIOKafkaConnection.send
_plain_send_to = AIOKafkaClient.send


def _send(self: Any, request: Any, expect_response: bool = True) -> Any:
    writer = self._writer
    try:
        return _plain_send(self, request, expect_response)
    except RuntimeError as error:
        if writer is None or not writer.transport.is_closing():
            raise
        self.close(reason=CloseReason.CONNECTION_BROKEN, exc=error)
        raise kafka.KafkaConnectionError(
            f"Connection at {self._host}:{self._port} broken: its transport is closed"
        ) from error


async def _send_to(
    self: Any, node_id: Any, request: Any, *, group: ConnectionGroup = ConnectionGroup.DEFAULT
) -> Any:
    try:
        return await _plain_send_to(self, node_id, request, group=group)
    except KeyError as error:
        # A request that times out closes its connection; where another has thrown that away already, and
        # its successor is still being made, there is none.
        if error.args != ((node_id, group),):
            raise
        raise kafka.RequestTimedOutError from error
