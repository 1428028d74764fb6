"""What a process holds alone, its forks let go of.

A model that forks, as multiprocessing does by default, leaves children that hold the port and the lock of the
slot open too. They outlive a worker that is killed or starts itself again, and it found its own port taken.
"""

from __future__ import annotations

import os
from collections.abc import Callable

_held: list[Callable[[], int]] = []


def keep(descriptor: Callable[[], int]) -> None:
    """Keep what `descriptor` gives (negative: nothing any more) from processes forked from now on."""
    if not _held:
        os.register_at_fork(after_in_child=_let_go)
    _held.append(descriptor)


def _let_go() -> None:
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        for descriptor in _held:
            if (number := descriptor()) >= 0:
                # Replaced, not closed: its object in the child would else close what gets the number next.
                os.dup2(nothing, number, inheritable=False)
    finally:
        os.close(nothing)
    _held.clear()
