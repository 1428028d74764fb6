"""A worker whose model hangs starts itself again: the same command line in the same process.

A thread that hangs in a model cannot be ended, and nobody but a supervisor would start a process that ends.
`exec` kills every thread, frees every lock, and keeps the process id for whoever watches that.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, NoReturn

from edgeway import signals
from edgeway.errors import Exit

log = logging.getLogger(__name__)

COUNT = "EDGEWAY_RESTARTS"
"""The variable in which a process tells its successor how often this has happened in a row."""
CALM_S = 600.0
"""A process that lived so long starts the count anew."""
MOST_PAUSE_S = 60


def _folder() -> str | None:
    try:
        return str(Path.cwd())
    except OSError:
        return None  # it was removed; so it is for whoever is started there again


# Before any app is imported: what that and its models make of them is not what the command was started with.
_ENVIRONMENT = dict(os.environ)
_FOLDER = _folder()


class Restart(NamedTuple):
    """Which one in a row it is, and how long to wait before it."""

    number: int
    pause_s: float


def next_restart(environment: Mapping[str, str], lived_s: float) -> Restart:
    """The restart that is due: pauses of 1, 2, 4 .. 60 s while they follow one another."""
    told = environment.get(COUNT, "")
    before = int(told) if told.isascii() and told.isdigit() and len(told) < 7 and lived_s < CALM_S else 0
    return Restart(before + 1, float(min(MOST_PAUSE_S, 1 << min(before, 6))))


def is_restart(environment: Mapping[str, str]) -> bool:
    """Whether this process has started itself again."""
    return bool(environment.get(COUNT))


def restart(lived_s: float) -> NoReturn:
    """Start the command line of this process again, in it, with the environment and in the folder that it was
    started with. Where that is not possible, end it.
    """
    due = next_restart(_ENVIRONMENT, lived_s)
    log.error("starting again in %.0f s, for the %d. time in a row", due.pause_s, due.number)
    for number in signals.stopping():
        # The loop that hears them stands still from here on: who says stop now is obeyed at once.
        signal.signal(number, _obey)
    time.sleep(due.pause_s)
    logging.shutdown()
    try:
        if _FOLDER is not None:
            os.chdir(_FOLDER)
        os.execve(sys.executable, sys.orig_argv, {**_ENVIRONMENT, COUNT: str(due.number)})
    except OSError as error:
        sys.stderr.write(f"edgeway cannot start itself again: {error}\n")
    os._exit(Exit.FAILED)


def _obey(number: int, _frame: object) -> NoReturn:
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    # The first process of a container is not killed by what it does not handle.
    os._exit(128 + number)
