"""What commands write: data to standard output, everything about it to standard error."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeway.errors import OutputLost
from edgeway.progress import Bar, bar

if TYPE_CHECKING:
    from edgeway.request_lines import BadLine

__all__ = [
    "Bar",
    "bar",
    "drop_stdout",
    "out",
    "out_json",
    "out_text",
    "prepare_streams",
    "say",
    "say_bad",
]


def prepare_streams() -> None:
    """Once, before anything is written: every character can be, and no file gets a standard stream's number.

    A stream that was closed by the caller is None in Python, and the next file opened takes its number.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - open to the end
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def drop_stdout() -> None:
    """Let what is still buffered go nowhere: Python would complain of it once more at its own flush."""
    if sys.stdout is None:
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def out(text: str) -> None:
    """A line of data.

    Raises:
        BrokenPipeError: its reader has gone.
        OutputLost: it cannot be written, for example because the disk is full.
    """
    if sys.stdout is None:
        raise OutputLost("it is closed")
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as exc:
        raise OutputLost(exc.strerror or str(exc)) from exc


def out_json(value: Any) -> None:
    """A line of JSON."""
    out_text(json.dumps(value, ensure_ascii=False, default=str))


def out_text(text: str) -> None:
    """A line that is JSON already; escaped as JSON does it where the stream is no UTF-8."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = json.dumps(json.loads(text))
    out(text)


def say(text: str) -> None:
    """A line for the person at the terminal."""
    # There is no third place to tell that this one is closed or full.
    with contextlib.suppress(OSError):
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


def say_bad(line: BadLine) -> None:
    """What is wrong with one line of input."""
    say(f"line {line.number}: {line.reason}; it was left out, the others go on")
