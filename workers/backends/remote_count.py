"""Counts calls of services elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from streams import metrics
from workers.backends.remote_faults import Trouble
from workers.errors import BadInput


class Counted:
    """Around one call with all its attempts. The outcome is `ok`, the code that the caller is told, or
    `cancelled`."""

    def __init__(self, capability: str) -> None:
        self._capability = capability

    def __enter__(self) -> None:
        self._began = time.monotonic()

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        metrics.REMOTE_S.labels(self._capability).observe(time.monotonic() - self._began)
        metrics.REMOTE_CALLS.labels(self._capability, _outcome(error)).inc()


def again(capability: str) -> None:
    """A call is made again."""
    metrics.REMOTE_RETRIES.labels(capability).inc()


def _outcome(error: BaseException | None) -> str:
    if error is None:
        return "ok"
    if isinstance(error, Trouble):
        return error.code
    if isinstance(error, BadInput):
        return "bad_input"
    return "internal" if isinstance(error, Exception) else "cancelled"
