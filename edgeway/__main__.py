"""`python -m edgeway`, and the `edgeway` command."""

import os
import signal
import sys


def main() -> int:
    """Run the command line; its exit code. Ctrl-C ends it with 130 also while it is still being imported."""
    heard = signal.getsignal(signal.SIGINT)
    # An exception there could surface anywhere in the import machinery, with a trace. Where Ctrl-C is
    # ignored (nohup, `&` in a script) it stays ignored.
    early = heard is signal.default_int_handler
    if early:
        signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(130))
    from edgeway.cli import main as run
    from edgeway.ending import arm

    arm()
    if early:
        signal.signal(signal.SIGINT, heard)
    try:
        return run()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
