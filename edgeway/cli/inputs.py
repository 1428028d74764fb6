"""Files that commands read, `-` being standard input."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO

from edgeway.errors import UsageError


def opened(file: str, flag: str | None = None) -> AbstractContextManager[IO[bytes]]:
    """The requests in `file` or, for `-`, on standard input, which stays open. `flag` named it.

    Raises:
        UsageError: it cannot be read.
    """
    if file != "-":
        return opened_file(file, flag)
    if sys.stdin is None:
        told = "" if flag is None else f"{flag} -: "
        raise UsageError(f"{told}standard input is closed; give it the requests, or name a file")
    return nullcontext(sys.stdin.buffer)


def opened_file(file: str, flag: str | None = None) -> IO[bytes]:
    """`file`, to be closed by the caller. `flag` named it.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        return Path(file).open("rb")
    except OSError as exc:
        told = file if flag is None else f"{flag} {file}"
        raise UsageError(f"{told}: cannot be read: {exc.strerror or exc}") from exc
