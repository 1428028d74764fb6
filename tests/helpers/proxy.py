"""A TCP proxy that holds back what the server answers: a slow network, with real sockets."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Self


class SlowProxy:
    """Listens on a free port of this host for the server at `port`. `delay_s` holds for each chunk from now
    on; chunks do not wait for each other, as on a long wire.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._links: set[asyncio.Task[None]] = set()
        self.delay_s = 0.0
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for link in self._links:
            link.cancel()
        await asyncio.gather(*self._links, return_exceptions=True)
        await asyncio.wait_for(self._server.wait_closed(), 5)

    def move(self, port: int) -> None:
        """Cut every connection; those made from now on lead to the server at `port`."""
        self._target = port
        for link in self._links:
            link.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._links.add(task)
        task.add_done_callback(self._links.discard)
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.close()
            return
        try:
            ways = (self._pump(reader, back, slow=False), self._pump(there, writer, slow=True))
            tasks = [asyncio.ensure_future(way) for way in ways]
            _, running = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for one in running:
                one.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            for end in (writer, back):
                with contextlib.suppress(OSError):
                    end.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, slow: bool) -> None:
        loop = asyncio.get_running_loop()
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(1000)

        async def write() -> None:
            while True:
                due, chunk = await waiting.get()
                await asyncio.sleep(max(0.0, due - loop.time()))
                writer.write(chunk)
                await writer.drain()

        task = asyncio.create_task(write())
        try:
            while chunk := await reader.read(65536):
                await waiting.put((loop.time() + (self.delay_s if slow else 0.0), chunk))
        finally:
            task.cancel()
