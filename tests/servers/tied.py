"""Runs a script that ends when its parent does: `python tied.py SCRIPT ARGUMENT...`.

The parent holds the other end of standard input: a test run that is killed leaves no server behind.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading


def _end_with_parent() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
