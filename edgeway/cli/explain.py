"""`edgeway explain`: what the router would decide, and why, without sending anything."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from edgeway import logs
from edgeway.cli.arguments import Subparsers, command, read_settings
from edgeway.cli.inputs import opened
from edgeway.cli.output import out, out_text, say
from edgeway.errors import Exit, UsageError

if TYPE_CHECKING:
    from edgeway.explain_live import Beats
    from edgeway.explain_record import Explained, Setting
    from streams.router.planner import Planner
    from streams.settings import Settings

_WIDTH = 100


def add(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = command(subparsers, "explain", "show what the router decides on requests, without sending them")
    parser.usage = "%(prog)s REQUESTS [flags]"
    parser.add_argument(
        "requests",
        nargs="?",
        metavar="REQUESTS",
        help="a JSON request, an array of them, or one a line (- is standard input)",
    )
    figures = parser.add_argument_group("what is known of the capabilities (else all are assumed alive)")
    figures.add_argument("--registry", metavar="FILE", help="cards, offers or heartbeats as JSON")
    figures.add_argument(
        "--live", action="store_true", help="the heartbeats of now; --kafka means this as well"
    )
    figures.add_argument("--save-registry", metavar="FILE", help="write the heartbeats of now to a file")
    parser.add_argument(
        "--budget", choices=("open", "spent", "away"), default="open", help="decide as if it were so"
    )
    parser.add_argument(
        "--now", type=int, metavar="MS", help="the time of acceptance, in ms since the epoch (default now)"
    )
    parser.add_argument("--strict", action="store_true", help="end with 1 where a request would be refused")
    parser.add_argument("--json", action="store_true", help="JSON lines, one a request")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """2 where lines are no requests, 1 with --strict where some would be refused, else 0."""
    settings = read_settings(args)
    logs.configure(settings, quiet_client=True)
    live = args.live or args.setting_kafka is not None
    if args.requests is None and args.save_registry is None:
        raise UsageError("what is to be explained? give a file of requests, or - for standard input")
    if args.registry is not None and (live or args.save_registry is not None):
        raise UsageError("give --registry, or Kafka (--kafka, --live, --save-registry), not both")
    if args.now is not None and live:
        raise UsageError("--now does not go with heartbeats of now: leave out --now, or save them first")
    if args.now is not None and not 0 <= args.now < 2**53:
        raise UsageError(f"--now {args.now}: give ms since the epoch")
    beats = _beats(settings, args) if live or args.save_registry is not None else None
    if args.requests is None:
        return Exit.OK
    with opened(args.requests) as stream:
        planner, setting = _prepared(settings, args, beats)
        return _explain(stream, planner, setting, args)


def _beats(settings: Settings, args: argparse.Namespace) -> Beats:
    from edgeway.explain_live import read_beats, save

    beats = asyncio.run(read_beats(settings))
    if not beats.alive():
        say("no worker is alive: no heartbeat in the last 10 s")
    if args.save_registry is not None:
        count = save(Path(args.save_registry), beats)
        say(f"{count} workers written to {args.save_registry}")
    return beats


def _prepared(settings: Settings, args: argparse.Namespace, beats: Beats | None) -> tuple[Planner, Setting]:
    from edgeway.cards_of import cards_of
    from edgeway.explain_record import Setting
    from edgeway.explain_registry import assumed, view_of
    from edgeway.roles.planning import planner_of
    from edgeway.rules_of import require_merges, rules_of

    rules = rules_of(settings)
    require_merges(rules)
    now = args.now if args.now is not None else int(time.time() * 1000)
    if beats is not None:
        setting = Setting(beats.view(rules), "live", beats.now, args.budget)
    elif args.registry is not None:
        setting = Setting(view_of(cards_of(args.registry), rules, now), "given", now, args.budget)
    else:
        setting = Setting(assumed(rules), "assumed", now, args.budget)
    if settings.rules is None:
        say("no --rules: the built-in tasks alone")
    return planner_of(rules), setting


def _explain(stream: IO[bytes], planner: Planner, setting: Setting, args: argparse.Namespace) -> int:
    from edgeway.explain_text import preface, text_of

    width = min(shutil.get_terminal_size((_WIDTH, 24)).columns, 160) if sys.stdout.isatty() else _WIDTH
    if not args.json:
        out("\n".join(_wrapped(preface(planner.rules.version, setting.origin, setting.purse), width)))
    count = refused = bad = 0
    for explained in _each(stream, planner, setting):
        count += 1
        if explained.privacy is None:
            bad += 1
            say(f"{_message(explained)}; the others go on")
        elif explained.error is not None:
            refused += 1
        if args.json:
            out_text(_json(explained))
        else:
            out("\n" + "\n".join(text_of(explained, width)))
    say(f"{count} explained, {refused} of them refused, {bad} bad lines")
    if bad:
        return Exit.USAGE
    return Exit.FAILED if args.strict and refused else Exit.OK


def _each(stream: IO[bytes], planner: Planner, setting: Setting) -> Iterator[Explained]:
    from edgeway.explain_lines import pieces
    from edgeway.explain_record import explain_line

    for number, raw in pieces(stream):
        yield explain_line(planner, setting, number, raw)


def _wrapped(text: str, width: int) -> list[str]:
    from edgeway.wrapping import wrapped

    return wrapped(text, width)


def _json(explained: Explained) -> str:
    import msgspec

    return msgspec.json.encode(explained).decode()


def _message(explained: Explained) -> str:
    assert explained.error is not None
    return explained.error.message
