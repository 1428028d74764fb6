"""A paid service over HTTP that knows to the millionth what it has charged, and for which payment."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from urllib.parse import parse_qs, urlsplit

SLOWEST_S = 0.008


class PaidApi:
    """Serves `POST /charge?nonce=N&micros=M` in a thread of its own while the block runs; `open` are the
    payments that wait for their answer.
    """

    def __init__(self) -> None:
        self.charged: dict[str, int] = {}
        self.open: set[str] = set()
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> PaidApi:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self) -> None:
        self._loop.run_until_complete(self._open())
        self._loop.run_forever()

    async def _open(self) -> None:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # The caller may be killed at any moment: what it was charged stands.
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                asked = parse_qs(urlsplit(head.split()[1]).query)
                nonce, micros = asked["nonce"][0], int(asked["micros"][0])
                assert nonce not in self.charged, "paid twice under one nonce"
                self.open.add(nonce)
                await asyncio.sleep(random.random() * SLOWEST_S)
                self.charged[nonce] = micros
                await asyncio.sleep(random.random() * SLOWEST_S)
                self.open.discard(nonce)
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
                await writer.drain()
        writer.close()
