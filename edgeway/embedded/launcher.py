"""Start a program that dies with its parent: ``launcher.py PARENT_PID PROGRAM [ARGUMENT...]``.

Run as a file by a fresh interpreter, standard library only. A `preexec_fn` in the parent would run
Python code between fork and exec, which can deadlock in a process with threads.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main(arguments: list[str]) -> None:
    parent = int(arguments[0])
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
            sys.exit(f"prctl(PR_SET_PDEATHSIG): {os.strerror(ctypes.get_errno())}")
        if os.getppid() != parent:
            sys.exit(f"parent {parent} is gone")  # It died before the signal was asked for.
    os.execv(arguments[1], arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
