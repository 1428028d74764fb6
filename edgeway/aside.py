"""Work off the loop that a process does not wait for when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def aside(work: Callable[[], T], name: str) -> asyncio.Future[T]:
    """What `work` gives or raises, from a thread of its own. Needs a running loop.

    `asyncio.to_thread` would do, but its threads are joined when the loop closes: a process whose read of a
    file hung could not be stopped. An end of the interpreter that `work` asks for is a RuntimeError.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if found.done():
            return
        if error is None:
            found.set_result(result)  # type: ignore[arg-type]
        elif isinstance(error, Exception) and not isinstance(error, StopIteration):
            found.set_exception(error)
        else:
            found.set_exception(RuntimeError(f"{type(error).__name__} from {name}"))

    def run() -> None:
        result: T | None = None
        failure: BaseException | None = None
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - nobody else would tell the one who waits
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop has closed: nobody waits any more
            loop.call_soon_threadsafe(settle, result, failure)

    # One that is given up for another may still fail, and nobody asks it then.
    found.add_done_callback(lambda done: done.cancelled() or done.exception())
    threading.Thread(target=run, name=name, daemon=True).start()
    return found
