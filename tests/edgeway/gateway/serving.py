"""A gateway in a thread with a loop of its own, for what calls it from outside of one."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Self

from tests.helpers.exchange import MemoryExchange, Script
from tests.helpers.gateway import Served, gateway


class Serving:
    """To be entered; `options` as `gateway` takes them."""

    def __init__(self, script: Script, **options: Any) -> None:
        self._script, self._options = script, options
        self._up, self._served = threading.Event(), list[Served]()

    @property
    def port(self) -> int:
        return self._served[0].port

    @property
    def exchange(self) -> MemoryExchange:
        return self._served[0].exchange

    async def _serve(self) -> None:
        async with gateway(self._script, socket=True, **self._options) as served:
            self._served.append(served)
            self._up.set()
            await self._down.wait()

    def __enter__(self) -> Self:
        self._loop, self._down = asyncio.new_event_loop(), asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))
        self._thread.start()
        assert self._up.wait(20)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._down.set)
        self._thread.join(20)
        self._loop.close()
