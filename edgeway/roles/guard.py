"""HTTP connections that are bounded in number and in time."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from workers.http.problems import Refused, of_refusal

HEAD_S = 10.0
"""A connection may take so long over the head of a request before it is cut."""
READ_S = 30.0
"""So long may an answer wait that is written and not read."""
LINGER_S = 2.0
"""So long a body is read and dropped after its call was refused."""
KEEP_ALIVE_S = 15
MOST_HEAD_BYTES = 32 * 1024
CONNECTIONS = 4096


class Guarded(H11Protocol):
    """uvicorn waits without limit for the first byte and the rest of a head, and for a reader of answers."""

    most_connections: int | None = None
    _guard: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if len(self.connections) >= (self.most_connections or CONNECTIONS):
            self.transport = transport
            self.flow = None  # type: ignore[assignment]
            transport.abort()
            return
        super().connection_made(transport)
        self._watch(HEAD_S)

    def connection_lost(self, exc: Exception | None) -> None:
        self._let_go()
        self._read()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is not before and not _is_done(self.cycle):
            self._let_go()

    def on_response_complete(self) -> None:
        # Closed at once, the connection would be reset, and with it the answer that the client has not read.
        unread = self.conn.their_state is h11.SEND_BODY
        self._watch(LINGER_S if unread else KEEP_ALIVE_S + HEAD_S)
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP as everything else is refused, and close."""
        reply = of_refusal(Refused("malformed", "this is no HTTP that can be read", title="No valid HTTP"))
        size = str(len(reply.body)).encode()
        headers = [(b"content-type", reply.media_type.encode()), (b"content-length", size)]
        headers.append((b"connection", b"close"))
        events = (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=reply.body),
        )
        for event in (*events, h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self._unread or self.loop.call_later(READ_S, self._late)

    def resume_writing(self) -> None:
        self._read()
        super().resume_writing()

    def _read(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _watch(self, seconds: float) -> None:
        self._let_go()
        self._guard = self.loop.call_later(seconds, self._late)

    def _let_go(self) -> None:
        if self._guard is not None:
            self._guard.cancel()
            self._guard = None

    def _late(self) -> None:
        self._guard = None
        self.transport.abort()


def guarded(connections: int | None) -> type[Guarded]:
    """The protocol for a server of at most so many connections, CONNECTIONS where nothing is said."""
    return type("Guarded", (Guarded,), {"most_connections": connections})


def _is_done(cycle: Any) -> bool:
    return cycle is None or bool(cycle.response_complete)
