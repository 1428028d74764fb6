"""`edgeway send`: one request from flags, or many from a JSONL file."""

from __future__ import annotations

import argparse
import asyncio
import io
import sys
from collections.abc import AsyncIterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING

from edgeway import logs
from edgeway.cli.arguments import Subparsers, command, duration, positive, read_settings
from edgeway.cli.input_files import with_files
from edgeway.cli.inputs import opened
from edgeway.cli.output import Bar, bar, out, out_json, out_text, say, say_bad
from edgeway.ending import ending
from edgeway.errors import Exit, UsageError

if TYPE_CHECKING:
    from edgeway.client_records import Ready
    from edgeway.sending import Line, Listeners, Outcome
    from schemas.messages import Request, Result

_CHUNK = 500
_SHOWN = 20
BEFORE = "  answered before: the id was used already, and this is its result"
_ONE = (
    "task",
    "query",
    "text",
    "input",
    "inputs",
    "input_file",
    "privacy",
    "deadline_ms",
    "id",
    "tenant",
    "reply_to",
)


def add(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = command(
        subparsers, "send", "send one request, or a file of them, and wait for the answers if asked to"
    )
    one = parser.add_argument_group("one request")
    one.add_argument("--task", metavar="NAME", help="a task of the rules")
    one.add_argument("--query", metavar="PHRASE", help="a phrase of one, such as 'financial report'")
    one.add_argument("--text", help="the input `text`")
    one.add_argument(
        "--input", action="append", metavar="NAME=VALUE", help="an input; JSON where it parses as such"
    )
    one.add_argument("--inputs", metavar="JSON", help="all inputs as a JSON object")
    one.add_argument(
        "--input-file",
        action="append",
        metavar="NAME=PATH",
        help="a file as an input; a large one goes to --objects and travels as a claim",
    )
    one.add_argument("--privacy", choices=("normal", "high"), help="high keeps it at the edge")
    one.add_argument(
        "--deadline-ms", type=int, metavar="MS", help="answer within this: 1 to 600000 (default 30000)"
    )
    one.add_argument("--id", help="its id; without it a random one")
    one.add_argument("--tenant", help="who asks")
    one.add_argument("--reply-to", metavar="TOPIC", help="also answer on this topic, results.NAME")
    many = parser.add_argument_group("many requests")
    many.add_argument("--file", metavar="FILE", help="a request a line in JSON (- is standard input)")
    many.add_argument("--rate", type=positive, metavar="N", help="requests a second, at most")
    parser.add_argument("--format", choices=("msgpack", "json"), default="msgpack", help="default msgpack")
    parser.add_argument("--wait", action="store_true", help="wait for the results and print them")
    parser.add_argument(
        "--timeout",
        type=duration,
        default=45_000,
        metavar="TIME",
        help="wait so long after the last one (default 45s)",
    )
    parser.add_argument("--json", action="store_true", help="JSON lines: results, or without --wait the ids")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """5 where results or acknowledgements did not come, 1 for error results, 2 for bad lines, else 0."""
    settings = read_settings(args)
    logs.configure(settings, quiet_client=True)
    from edgeway.sending import Manner, Outcome, send

    many = args.file is not None
    if many and any(getattr(args, name) is not None for name in _ONE):
        flags = ", ".join("--" + name.replace("_", "-") for name in _ONE)
        raise UsageError(f"--file brings whole requests: leave out {flags}")
    request = None if many else _asked(args)
    if request is not None and args.input_file:
        request = with_files(request, args.input_file, settings)
    manner = Manner(args.format, args.rate, args.timeout / 1000 if args.wait else None)
    source = opened(args.file, "--file") if many else nullcontext(io.BytesIO())
    with source as stream, bar("sending", _length(args.file), many) as progress:
        lines = _lines(stream) if request is None else _single(request)
        outcome = Outcome()
        try:
            asyncio.run(ending(send(settings, lines, manner, _listeners(args, many, progress), outcome)))
        except KeyboardInterrupt:
            outcome.trouble = "interrupted"
            _end(outcome, True, args.wait, args.json)
            return Exit.INTERRUPTED
    return _end(outcome, many, args.wait, args.json)


def _length(file: str | None) -> int | None:
    if file is None or file == "-" or not sys.stderr.isatty():
        return None
    with Path(file).open("rb") as stream:
        return sum(1 for line in stream if line.strip())


async def _lines(stream: IO[bytes]) -> AsyncIterator[Line]:
    """The requests of a file. Reading may wait (a pipe), so it is done in a thread."""
    from edgeway.request_lines import parse_line

    at_once = _CHUNK if stream.seekable() else 1
    number = 0
    while chunk := await asyncio.to_thread(lambda: list(islice(stream, at_once))):
        for raw in chunk:
            number += 1
            line = parse_line(number, raw)
            if line is not None:
                yield number, line


async def _single(request: Request) -> AsyncIterator[Line]:
    yield 1, request


def _asked(args: argparse.Namespace) -> Request:
    """The request of the flags, made before anything is connected."""
    from edgeway.request_lines import Ask, request_of

    fields = {name: getattr(args, name) for name in ("privacy", "deadline_ms", "id", "tenant", "reply_to")}
    try:
        return request_of(Ask(args.task, args.query, args.text, args.input or (), args.inputs, fields))
    except ValueError as exc:
        raise UsageError(str(exc)) from exc


def _listeners(args: argparse.Namespace, many: bool, progress: Bar) -> Listeners:
    from edgeway.cli.show import full, short
    from edgeway.client_records import to_json
    from edgeway.request_lines import BadLine
    from edgeway.sending import Listeners

    def sent(record: Ready) -> None:
        progress.advance()
        if not args.wait and args.json:
            out_json({"id": record.id})
        elif not args.wait and not many:
            out(record.id)

    def bad(line: BadLine) -> None:
        if not many:
            raise UsageError(line.reason)
        say_bad(line)

    def result(found: Result) -> None:
        if args.json:
            out_text(to_json(found))
        else:
            out(short(found) if many else "\n".join(full(found)))

    def earlier(found: Result) -> None:
        if args.json:
            out_text(to_json(found))
        else:
            out(f"{short(found)}  (answered before)" if many else "\n".join([*full(found), BEFORE]))

    return Listeners(sent, bad, result, earlier)


def _end(outcome: Outcome, many: bool, waited: bool, as_json: bool) -> int:
    if outcome.trouble:
        say(f"edgeway: {outcome.trouble}")
    if many or outcome.trouble or outcome.unknown or outcome.unanswered:
        text = f"{outcome.sent} sent, {outcome.bad} bad lines, {len(outcome.unknown)} not acknowledged"
        if waited:
            text += f", {outcome.answered} answered, {outcome.errors} of them errors"
            text += f", {len(outcome.unanswered)} unanswered"
        if outcome.duplicates:
            text += f", {outcome.duplicates} duplicate results"
        say(text)
    if many or as_json:
        _name("answered before: the ids were used already, and these are their results", outcome.earlier)
    _name("not acknowledged (the broker may have them all the same)", outcome.unknown)
    _name(
        "no result in time (are router, worker and aggregator up? `edgeway audit` shows)", outcome.unanswered
    )
    if outcome.unknown or outcome.unanswered or outcome.trouble:
        return Exit.UNANSWERED
    if outcome.errors:
        return Exit.FAILED
    return Exit.USAGE if outcome.bad else Exit.OK


def _name(what: str, ids: list[str]) -> None:
    if ids:
        more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
        say(f"{what}: {', '.join(ids[:_SHOWN])}{more}")
