"""A process that was told to stop ends, whatever threads and processes the code that it served has left.

The interpreter waits for threads that are no daemons, for the pools of concurrent.futures and the processes
of multiprocessing. A model that leaves one kept `edgeway worker` alive until it was killed, long after
everything was stopped in order.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import threading
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

from edgeway.errors import Exit

T = TypeVar("T")
log = logging.getLogger(__name__)

PATIENCE_S = 3.0
"""For what the interpreter and the served code do at their end."""
INTERRUPTED_S = 8.0
"""An interrupted command may take so long: its clients have 5 s to stop in order."""
MOST_NAMES = 5

_own = threading.Event()


def arm() -> None:
    """This process is a command's own, which `end_within` may end."""
    _own.set()


def end_within(code: int, wait_s: float = PATIENCE_S) -> None:
    """End the process with `code` in `wait_s`, unless it has ended by then. Does nothing unless armed, as in
    a test that runs a command in its own process."""
    if _own.is_set():
        threading.Thread(target=_end, args=(code, wait_s), name="ending", daemon=True).start()


async def ending(work: Coroutine[Any, Any, T]) -> T:
    """Await the work of a command; where it is interrupted the process ends soon, whatever does not let go.

    The Kafka client now and then swallows the cancellation of a task of its own, and `asyncio.run` waits for
    such a task without end: Ctrl-C was without effect in one of some hundred runs.
    """
    try:
        return await work
    except asyncio.CancelledError:
        end_within(Exit.INTERRUPTED, INTERRUPTED_S)
        raise


def _end(code: int, wait_s: float) -> None:
    time.sleep(wait_s)
    left = [thread.name for thread in threading.enumerate() if _is_in_the_way(thread)]
    left += [process.name for process in multiprocessing.active_children()]
    more = f" and {len(left) - MOST_NAMES} more" if len(left) > MOST_NAMES else ""
    log.warning("ended over what did not end by itself: %s%s", ", ".join(left[:MOST_NAMES]) or "?", more)
    logging.shutdown()
    os._exit(code)


def _is_in_the_way(thread: threading.Thread) -> bool:
    pooled = thread.name.startswith(("ThreadPoolExecutor", "asyncio_"))
    return thread is not threading.main_thread() and (pooled or not thread.daemon)
