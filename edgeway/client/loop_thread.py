"""An event loop of one's own in a thread, for callers that have none or that have another one."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from edgeway.client.errors import ClientClosed

T = TypeVar("T")
STOP_S = 15.0


class LoopThread:
    """Runs coroutines for other threads. Begun at the first call; a daemon, so that it keeps no process.

    It does not live on in a forked child: there every call raises ClientClosed.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._closed = False
        self._ending: asyncio.Task[None] | None = None

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin `work` in the loop.

        Raises:
            ClientClosed: it was closed, or this is a forked child.
        """
        try:
            loop = self._running()
        except ClientClosed:
            work.close()
            raise
        return asyncio.run_coroutine_threadsafe(work, loop)

    def call(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """The result of `work`; Ctrl-C in the meantime cancels it, as does the end of `timeout_s`."""
        future = self.submit(work)
        try:
            return future.result(timeout_s)
        except CancelledError:
            raise ClientClosed("the client was closed during the call") from None
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """End what still runs, the loop and the thread. Harmless when repeated, and in a forked child."""
        if os.getpid() != self._pid:
            # The lock may have been held by another thread at the moment of the fork, and is so for ever.
            self._closed = True
            return
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
            self._closed = True
        if loop is None or thread is None:
            return
        if thread is threading.current_thread():
            raise RuntimeError("a client cannot be closed from within its own loop")
        loop.call_soon_threadsafe(loop.stop)
        thread.join(STOP_S)

    def abandon(self, closing: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Let `closing` run and the loop end, without waiting for it: for a finalizer, which may run in any
        thread, the loop's own among them.
        """
        loop, self._closed = self._loop, True
        if loop is None or os.getpid() != self._pid or loop.is_closed():
            return

        async def end() -> None:
            try:
                await closing()
            finally:
                loop.stop()

        def begin() -> None:
            self._ending = loop.create_task(end())

        loop.call_soon_threadsafe(begin)

    @property
    def is_begun(self) -> bool:
        """Whether there is a loop that something may have been left in."""
        return self._loop is not None and os.getpid() == self._pid

    def _running(self) -> asyncio.AbstractEventLoop:
        if os.getpid() != self._pid:
            raise ClientClosed("a client does not live on in a forked child: make one there, after the fork")
        with self._lock:
            if self._closed:
                raise ClientClosed("the client is closed")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_run, args=(self._loop,), name=self._name, daemon=True)
                self._thread.start()
            return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def close_in_time(owner: Any, thread: LoopThread, closing: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Call `owner.close()` at the end of the process; end `thread` by itself where `owner` is gone before.

    `closing` must not refer to `owner`.
    """
    known = weakref.ref(owner)

    def close() -> None:
        found = known()
        if found is not None:
            found.close()

    def abandon() -> None:
        atexit.unregister(close)
        thread.abandon(closing)

    atexit.register(close)
    # At the end of the process `close` is called, which waits; this one would keep it from being called.
    weakref.finalize(owner, abandon).atexit = False
