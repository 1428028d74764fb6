"""Faults of backends in the log: each kind once in a while, with its place, never with a payload."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from traceback import walk_tb

from schemas.messages import Failure
from workers.errors import BadInput, BadOutput, CapabilityError, failure_of, where

log = logging.getLogger(__name__)

EVERY_S = 10.0
"""A kind of fault (capability, type, place) is logged once in so many seconds; the others are counted."""

_DIGITS = re.compile(r"\d+")

MOST_KINDS = 500
MOST_FRAMES = 12
MOST_CAUSES = 3


class FaultLog:
    """Logs faults from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kinds: dict[tuple[str, ...], tuple[float, int]] = {}

    def raised(self, error: BaseException, capability: str, rows: int = 1) -> None:
        """Log what a backend raised: its type and its frames. Its message, which may quote the payload, is
        shown at level debug alone."""
        unsaid = self._due((capability, type(error).__name__, where(error)))
        if unsaid is None:
            return
        shown = error if log.isEnabledFor(logging.DEBUG) else None
        trace = "; caused by ".join(_told(link) for link in _chain(error))
        log.warning("%s failed on %d rows: %s%s", capability, rows, trace, _more(unsaid), exc_info=shown)

    def refused(self, failure: Failure) -> None:
        """Log an answer that was withheld; its message names the capability and quotes no payload."""
        unsaid = self._due((failure.code, _DIGITS.sub("", failure.message)))
        if unsaid is not None:
            log.warning("an answer was withheld as %s: %s%s", failure.code, failure.message, _more(unsaid))

    def elsewhere(self, failure: Failure) -> None:
        """Log that a service gave no usable answer; the message quotes neither payload nor key."""
        unsaid = self._due((failure.code, _DIGITS.sub("", failure.message)))
        if unsaid is not None:
            log.warning("a call elsewhere failed: %s%s", failure.message, _more(unsaid))

    def _due(self, kind: tuple[str, ...]) -> int | None:
        """How many of `kind` went unsaid since the last one, None where this one goes unsaid too."""
        now = self._clock()
        with self._lock:
            if len(self._kinds) >= MOST_KINDS and kind not in self._kinds:
                self._kinds.clear()
            said, unsaid = self._kinds.get(kind, (-EVERY_S, 0))
            if kind in self._kinds and now - said < EVERY_S:
                self._kinds[kind] = (said, unsaid + 1)
                return None
            self._kinds[kind] = (now, 0)
            return unsaid


FAULTS = FaultLog()
"""The log of this process: what is said once in a while is said so for all of its workers."""


def told(error: BaseException, capability: str) -> Failure:
    """What the caller is told of `error`; whatever is not the caller's fault is logged, and so is what the
    caller is not told in full."""
    failure = failure_of(error, capability)
    chosen = isinstance(error, BadInput | CapabilityError) and failure.code == "bad_input"
    if not chosen and (failure.code != "bad_input" or "log" in failure.message):
        FAULTS.raised(error, capability)
    return failure


def _chain(error: BaseException) -> Iterator[BaseException]:
    link: BaseException | None = error
    for _ in range(MOST_CAUSES):
        if link is None:
            return
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _told(error: BaseException) -> str:
    frames = [
        f"{frame.f_code.co_filename}:{line} in {frame.f_code.co_name}"
        for frame, line in walk_tb(error.__traceback__)
    ]
    # The message of BadOutput is free of payload by its contract.
    said = f" ({error})" if isinstance(error, BadOutput) else ""
    return f"{type(error).__name__}{said} at {' < '.join(frames[: -MOST_FRAMES - 1 : -1]) or 'unknown place'}"


def _more(unsaid: int) -> str:
    return f" ({unsaid} more like it since the last line)" if unsaid else ""
