"""`edgeway feedback`: says of an answer whether it was right."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeway import logs
from edgeway.cli.arguments import Subparsers, command, read_settings
from edgeway.cli.output import bar, out_json, say, say_bad
from edgeway.errors import Exit, UsageError

if TYPE_CHECKING:
    from schemas.messages import Feedback

_ONE = ("id", "verdict", "score", "label", "tenant")
_MOST_BYTES = 256 * 2**20


def add(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = command(subparsers, "feedback", "say of an answer whether it was right")
    one = parser.add_argument_group("one answer")
    one.add_argument("--id", help="the id of the request")
    said = one.add_mutually_exclusive_group()
    said.add_argument("--right", dest="verdict", action="store_const", const="right", help="it was right")
    said.add_argument("--wrong", dest="verdict", action="store_const", const="wrong", help="it was wrong")
    said.add_argument(
        "--score",
        type=float,
        metavar="X",
        help="how right it was, 0 to 1; it weighs as so much of a right one",
    )
    one.add_argument(
        "--label", metavar="VALUE", help="what would have been right; JSON where it parses as such"
    )
    one.add_argument("--tenant", help="who asked")
    many = parser.add_argument_group("many answers")
    many.add_argument(
        "--file",
        metavar="FILE",
        help='a line of JSON an answer: {"id": ..., "verdict": "right"|"wrong" or "score": X}'
        " (- is standard input)",
    )
    parser.add_argument("--json", action="store_true", help="how many were sent, as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """2 for bad lines, 5 where some were not acknowledged, else 0."""
    settings = read_settings(args)
    logs.configure(settings, quiet_client=True)
    from edgeway.feedback_topic import publish

    heard, bad = _heard(args)
    with bar("sending", len(heard), args.file is not None) as progress:
        unknown = asyncio.run(publish(settings, heard, progress.advance)) if heard else []
    if args.json:
        out_json({"sent": len(heard), "bad": bad, "not_acknowledged": unknown})
    else:
        say(f"{len(heard)} sent" + (f", {bad} bad lines left out" if bad else ""))
    if unknown:
        say(f"{len(unknown)} were not acknowledged; send them again, the last word on an answer counts")
        return Exit.UNANSWERED
    return Exit.USAGE if bad else Exit.OK


def _heard(args: argparse.Namespace) -> tuple[list[Feedback], int]:
    """The feedback of the flags or the file, and how many lines are none."""
    if args.file is None:
        return [_one(args)], 0
    if given := [name for name in _ONE if getattr(args, name) is not None]:
        flags = ", ".join("--" + (args.verdict if name == "verdict" else name) for name in given)
        raise UsageError(f"--file brings whole lines: leave out {flags}")
    from edgeway.feedback import feedback_of
    from edgeway.request_lines import BadLine

    found, bad = [], 0
    for number, line in enumerate(read_file(args.file).splitlines(), 1):
        try:
            heard = feedback_of(line)
        except ValueError as error:
            bad += 1
            say_bad(BadLine(number, str(error)))
        else:
            found += [] if heard is None else [heard]
    return found, bad


def _one(args: argparse.Namespace) -> Feedback:
    from edgeway.feedback import feedback_of

    if args.id is None:
        raise UsageError("which answer? give --id ID and --right, --wrong or --score X, or --file FILE")
    said: dict[str, Any] = {name: getattr(args, name) for name in ("id", "verdict", "score", "tenant")}
    said["label"] = _value(args.label)
    try:
        line = json.dumps({"type": "feedback"} | said, allow_nan=False)
        heard = feedback_of(line.encode())
    except ValueError as error:
        raise UsageError(str(error)) from error
    assert heard is not None
    return heard


def _value(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def read_file(file: str) -> bytes:
    """The whole of a file, of 256 MiB at most."""
    try:
        if file == "-":
            raw = b"" if sys.stdin is None else sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with Path(file).open("rb") as stream:
                raw = stream.read(_MOST_BYTES + 1)
    except OSError as exc:
        raise UsageError(f"{file}: cannot be read: {exc}") from exc
    if len(raw) > _MOST_BYTES:
        raise UsageError(f"{file} is larger than 256 MiB; give it in parts")
    return raw
