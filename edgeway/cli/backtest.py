"""`edgeway backtest`: two rule files on recorded traffic."""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from edgeway import logs
from edgeway.cli.arguments import Subparsers, back, command, duration, read_settings
from edgeway.cli.inputs import opened_file
from edgeway.cli.output import bar, out_text, say, say_bad
from edgeway.ending import ending
from edgeway.errors import Exit, OutputLost, UsageError

if TYPE_CHECKING:
    from edgeway.backtest import Contender
    from edgeway.explain_live import Beats
    from edgeway.recorded import Recorded
    from edgeway.request_lines import BadLine
    from schemas.messages import Feedback
    from streams.settings import Settings

_HOUR_MS = 3_600_000
_WIDTH = 100
_MOST_NAMED = 20


def add(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = command(subparsers, "backtest", "compare two rule files on recorded traffic")
    # argparse wants the two side by side: a flag in between ends them.
    parser.usage = "%(prog)s RULES RECORDED [flags]"
    parser.add_argument("rules", nargs="?", metavar="RULES", help="the rules to be tried")
    parser.add_argument(
        "recorded",
        nargs="?",
        metavar="RECORDED",
        help="recorded traffic, one JSON object a line (- is stdin)",
    )
    parser.add_argument(
        "--against", metavar="FILE", help="the rules to compare with; else what was recorded as decided"
    )
    parser.add_argument(
        "--from-topics", action="store_true", help="take the traffic from Kafka instead of a file"
    )
    parser.add_argument(
        "--since", type=duration, metavar="TIME", help="with --from-topics begin so long ago (default 1h)"
    )
    parser.add_argument("--save", metavar="FILE", help="with --from-topics keep the traffic in this file")
    parser.add_argument("--registry", metavar="FILE", help="cards, offers or heartbeats as JSON")
    parser.add_argument("--feedback", metavar="FILE", help="feedback, one JSON object a line")
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """2 where lines could not be read, else 0."""
    settings = read_settings(args)
    logs.configure(settings, quiet_client=True)
    _check(args)
    bad: list[BadLine] = []
    with _traffic(settings, args) as stream:
        if args.rules is None:
            return Exit.OK
        try:
            _try(settings, args, stream, bad)
        finally:
            _name(bad)
    return Exit.USAGE if bad else Exit.OK


def _try(settings: Settings, args: argparse.Namespace, stream: IO[bytes], bad: list[BadLine]) -> None:
    feedback = _feedback(args.feedback, bad)
    beats = _beats(settings) if args.from_topics and args.registry is None else None
    old = None if args.against is None else _contender(args.against, args, beats)
    _compare(args, stream, (old, _contender(args.rules, args, beats)), feedback, bad)


def _name(bad: list[BadLine]) -> None:
    for line in bad[:_MOST_NAMED]:
        say_bad(line)
    if len(bad) > _MOST_NAMED:
        say(f"and {len(bad) - _MOST_NAMED} more bad lines")


def _check(args: argparse.Namespace) -> None:
    if args.from_topics and args.recorded is not None:
        raise UsageError("give a file of recorded traffic or --from-topics, not both")
    if not args.from_topics:
        if args.rules is None or args.recorded is None:
            raise UsageError("give RULES and RECORDED, or RULES and --from-topics")
        if args.since is not None or args.save is not None:
            raise UsageError("--since and --save go with --from-topics only")
    elif args.rules is None and args.save is None:
        raise UsageError("give RULES to try on the traffic, or --save FILE to keep it")


def _compare(
    args: argparse.Namespace,
    stream: IO[bytes],
    sides: tuple[Contender | None, Contender],
    feedback: dict[str, Feedback],
    bad: list[BadLine],
) -> None:
    from edgeway.backtest import Traffic, backtest
    from edgeway.recorded_file import RecordedFile

    file = RecordedFile(stream, bad.append)
    with bar("comparing") as progress:

        def shown(records: Iterable[Recorded]) -> Iterator[Recorded]:
            for recorded in records:
                progress.advance()
                yield recorded

        traffic = Traffic(lambda: shown(file.scan()), lambda: shown(file.in_time()), lambda: len(bad))
        report = backtest(traffic, *sides, feedback)
    if not report.records.read:
        raise UsageError("there is no record to compare by")
    if not report.records.compared:
        raise UsageError("no record has a result to compare with: give --against OLD.json")
    if args.json:
        import msgspec

        out_text(msgspec.json.encode(report).decode())
        return
    from edgeway.backtest_text import show

    tty = sys.stdout is not None and sys.stdout.isatty()
    width = min(shutil.get_terminal_size((_WIDTH, 24)).columns, 160) if tty else _WIDTH
    try:
        show(report, sys.stdout, width)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as exc:
        raise OutputLost(exc.strerror or str(exc)) from exc


def _contender(file: str, args: argparse.Namespace, beats: Beats | None) -> Contender:
    from edgeway.backtest import Contender
    from edgeway.cards_of import cards_of
    from edgeway.explain_record import Setting
    from edgeway.explain_registry import assumed, view_of
    from edgeway.roles.planning import planner_of
    from edgeway.rules_of import require_merges, rules_of
    from streams.settings import Settings

    rules = rules_of(Settings(rules=Path(file)))
    require_merges(rules)
    if args.registry is not None:
        setting = Setting(view_of(cards_of(args.registry), rules, 0), "given", 0)
    elif beats is not None:
        setting = Setting(beats.view(rules), "live", beats.now)
    else:
        setting = Setting(assumed(rules), "assumed", 0)
    return Contender(file, planner_of(rules), setting)


def _beats(settings: Settings) -> Beats:
    from edgeway.explain_live import read_beats

    return asyncio.run(read_beats(settings))


def _feedback(file: str | None, bad: list[BadLine]) -> dict[str, Feedback]:
    from edgeway.backtest import by_scoped_id
    from edgeway.recorded import parse_feedback
    from edgeway.request_lines import BadLine
    from schemas.messages import Feedback

    if file is None:
        return {}
    found: list[Feedback] = []
    with opened_file(file, "--feedback") as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            said = parse_feedback(number, line.strip())
            if isinstance(said, Feedback):
                found.append(said)
            else:
                bad.append(BadLine(number, f"of {file}: {said.reason}"))
    return by_scoped_id(found)


@contextmanager
def _traffic(settings: Settings, args: argparse.Namespace) -> Iterator[IO[bytes]]:
    """The recorded traffic, as a file that can be read again."""
    if args.from_topics:
        with _kept(args.save) as stream:
            asyncio.run(ending(_record(settings, args, stream)))
            yield stream
    elif args.recorded == "-":
        if sys.stdin is None:
            raise UsageError("standard input is closed; give it the traffic, or name a file")
        with _again(sys.stdin.buffer) as stream:
            yield stream
    else:
        with opened_file(args.recorded, "RECORDED") as stream:
            if stream.seekable():
                yield stream
            else:
                with _again(stream) as copy:
                    yield copy


@contextmanager
def _again(stream: IO[bytes]) -> Iterator[IO[bytes]]:
    """What comes through a pipe, as a file: it is read twice."""
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(stream, copy)
        yield copy


async def _record(settings: Settings, args: argparse.Namespace, stream: IO[bytes]) -> None:
    from edgeway.recorded_topics import record

    since = back(int(time.time() * 1000), _HOUR_MS if args.since is None else args.since)
    with bar("reading") as progress:
        count = await record(settings, since, stream, progress.advance)
    stream.flush()
    say(f"{count} requests recorded" + (f" in {args.save}" if args.save else ""))


@contextmanager
def _kept(file: str | None) -> Iterator[Any]:
    """Where recorded traffic goes: to a file that only its owner reads, as it holds the requests whole."""
    if file is None:
        with tempfile.TemporaryFile() as stream:
            yield stream
        return
    try:
        number = os.open(file, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    except OSError as exc:
        raise UsageError(f"--save {file}: cannot be written: {exc.strerror or exc}") from exc
    with os.fdopen(number, "r+b") as stream:
        if stat.S_ISREG(os.fstat(number).st_mode):
            # The mode above counts for a new file only.
            os.fchmod(number, 0o600)
        yield stream
