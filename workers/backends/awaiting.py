"""Waiting for a user's coroutine: bounded in time, and whatever it raises comes back as a value."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine
from typing import Any

from workers.errors import CapabilityError

log = logging.getLogger(__name__)

_LATE = "the function gave no answer by the deadline, and was cancelled"
_abandoned: set[asyncio.Task[Any]] = set()


async def within(work: Coroutine[Any, Any, Any], until: float | None) -> Any:
    """What `work` returns, or the SystemExit and the like that it raises; other exceptions are raised.

    Raises:
        CapabilityError: `deadline_exceeded`, at `until` (`time.monotonic()`); it is cancelled then, and not
        waited for.
    """
    if until is None:
        return await _kept(work)
    task = asyncio.ensure_future(_kept(work))
    try:
        await asyncio.wait((task,), timeout=max(0.0, until - time.monotonic()))
    finally:
        if not task.done():
            task.cancel()
            # What swallows its cancellation would hold the whole batch, were it awaited.
            _abandoned.add(task)
            task.add_done_callback(_ended)
    if not task.done():
        raise CapabilityError("deadline_exceeded", _LATE)
    return task.result()


def unkept(value: Any) -> Any:
    """`value`, raised where it is an exception."""
    if isinstance(value, BaseException):
        raise value
    return value


async def _kept(work: Coroutine[Any, Any, Any]) -> Any:
    # Raised in a task these end the loop's thread, and whoever waits for the answer waits for ever.
    try:
        return await work
    except (SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError) as error:
        return error


def _ended(task: asyncio.Task[Any]) -> None:
    _abandoned.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        log.debug("a function that was cancelled ended with %s", type(error).__name__)
