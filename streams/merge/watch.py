"""A time limit for code that is not ours, on the thread that must get on with its work."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

T = TypeVar("T")
LOOK_S = 0.05

_throw = ctypes.pythonapi.PyThreadState_SetAsyncExc
_throw.argtypes = (ctypes.c_ulong, ctypes.py_object)
_NOTHING = ctypes.py_object()


class Overrun(BaseException):
    """It took longer than it may. No Exception: a loop around `except Exception` would go on for ever."""


class _Turn(NamedTuple):
    thread: int
    until: float


class Watch:
    """Ends calls that take too long, by an exception thrown into their thread until they are over.

    A trace function does not do: it is not called in `while True: pass`, and is gone once its exception was
    caught by a bare `except`, after which the loop around that never ended. For one call at a time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turn: _Turn | None = None
        self._thread: threading.Thread | None = None

    def call(self, work: Callable[[], T], longest_s: float) -> T:
        """What `work` returns. Raises Overrun where it took longer; what it raises itself goes on."""
        if self._thread is None or not self._thread.is_alive():  # the first call, or the first in a fork
            self._lock, self._turn = threading.Lock(), None
            self._thread = threading.Thread(target=self._look, name="merge watch", daemon=True)
            self._thread.start()
        me = threading.get_ident()
        late = False
        try:
            self._turn = _Turn(me, time.monotonic() + longest_s)
            return work()
        except Overrun:
            late = True
            raise
        finally:
            self._over(me, late)

    def _over(self, me: int, late: bool) -> None:
        """Nothing is thrown after this; an exception that is on its way is let in here or taken back."""
        while True:
            try:
                with self._lock:
                    self._turn = None
                    _throw(me, _NOTHING)
                break
            except Overrun:
                late = True
        if late:
            raise Overrun

    def _look(self) -> None:
        while True:
            time.sleep(LOOK_S)
            with self._lock:
                turn = self._turn
                if turn is not None and time.monotonic() > turn.until:
                    _throw(turn.thread, Overrun)
