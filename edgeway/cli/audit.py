"""`edgeway audit`: requests of a window without an answer."""

from __future__ import annotations

import argparse
import asyncio
import time
from typing import TYPE_CHECKING, Any

from edgeway import logs
from edgeway.cli.arguments import Subparsers, back, command, duration, moment, read_settings
from edgeway.cli.output import bar, out, out_json, say
from edgeway.errors import Exit, UsageError

if TYPE_CHECKING:
    from edgeway.auditing import Found, Window

_SHOWN = 50
_ANSWER_S = 30.0


def add(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = command(
        subparsers, "audit", "find requests of a time window that have no answer past their deadline"
    )
    parser.add_argument("--since", type=duration, metavar="TIME", help="begin so long ago (default 1h)")
    parser.add_argument(
        "--from", dest="start", type=moment, metavar="TIME", help="begin at this time (ISO 8601)"
    )
    parser.add_argument(
        "--to", dest="end", type=moment, metavar="TIME", help="end at this time (default now)"
    )
    parser.add_argument(
        "--grace",
        type=duration,
        default=10_000,
        metavar="TIME",
        help="an answer may be so late before it counts as missing (default 10s: a takeover takes that)",
    )
    parser.add_argument("--answer", action="store_true", help="give each an error result (`unanswered`)")
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """0 where all are answered (with --answer: at last), else 5."""
    settings = read_settings(args)
    logs.configure(settings, quiet_client=True)
    from edgeway.auditing import answer_all, find

    window = _window(args, int(time.time() * 1000))
    with bar("reading") as progress:
        found = asyncio.run(find(settings, window, progress.advance))
    left = [asked.scoped for asked in found.unanswered]
    if args.answer and found.unanswered:
        left = asyncio.run(answer_all(settings, found.unanswered, _ANSWER_S))
    report = _report(found, window)
    if args.answer:
        report |= {"answered_now": len(found.unanswered) - len(left), "still_unanswered": left}
    if args.json:
        out_json(report)
    else:
        _show(report)
    return Exit.UNANSWERED if left else Exit.OK


def _window(args: argparse.Namespace, now: int) -> Window:
    from edgeway.auditing import Window

    if args.start is not None and args.since is not None:
        raise UsageError("give --since or --from, not both")
    ago = args.since if args.since is not None else 3_600_000
    start = args.start if args.start is not None else back(now, ago)
    end = args.end if args.end is not None else now
    if start >= end:
        raise UsageError("the window ends before it begins; give a --to later than --from")
    return Window(start, end, now, args.grace)


def _report(found: Found, window: Window) -> dict[str, Any]:
    ledger = found.ledger
    return {
        "from_ms": window.start,
        "to_ms": window.end,
        "requests": ledger.requests,
        "answered": ledger.answered,
        "waiting": found.waiting,
        "repeated": ledger.repeated,
        "unreadable": ledger.unreadable,
        "unanswered": [
            {
                "id": asked.id,
                "tenant": asked.request.tenant,
                "task": asked.request.task,
                "accepted_ms": asked.accepted,
                "deadline_ms": asked.deadline,
                "partition": asked.partition,
                "offset": asked.offset,
            }
            for asked in found.unanswered
        ],
    }


def _show(report: dict[str, Any]) -> None:
    for asked in report["unanswered"][:_SHOWN]:
        late = (report["to_ms"] - asked["deadline_ms"]) / 1000
        place = f"requests/{asked['partition']} offset {asked['offset']}"
        out(f"{asked['id']}  task {asked['task'] or '-'}  {place}  {late:.0f} s past its deadline")
    hidden = len(report["unanswered"]) - _SHOWN
    if hidden > 0:
        out(f"... and {hidden} more (--json has all)")
    say(
        f"{report['requests']} requests: {report['answered']} answered, {report['waiting']} with time left, "
        f"{report['repeated']} repeated (sent more than once, answered once), "
        f"{report['unreadable']} unreadable (see dead-letters), "
        f"{len(report['unanswered'])} unanswered"
    )
    if "answered_now" in report:
        say(f"{report['answered_now']} were given an error result, {len(report['still_unanswered'])} not yet")
        if report["still_unanswered"]:
            say("their answers come when an aggregator runs: `edgeway aggregator` or `edgeway up`")
    elif report["unanswered"]:
        say("`edgeway audit --answer` gives each an error result")
