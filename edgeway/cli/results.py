"""`edgeway results`: results as they come, or those of the last minutes."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterable
from typing import Any

from edgeway import logs
from edgeway.cli.arguments import Subparsers, back, command, duration, read_settings
from edgeway.cli.output import out, out_text, say
from edgeway.ending import ending
from edgeway.errors import Exit
from streams.settings import Settings

_RECENT_MS = 600_000


def add(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = command(subparsers, "results", "print results, those of the last minutes or as they come")
    parser.add_argument(
        "--follow", action="store_true", help="go on until interrupted, or until --id was found"
    )
    parser.add_argument(
        "--since", type=duration, metavar="TIME", help="begin so long ago (default 10m, with --follow now)"
    )
    parser.add_argument("--id", help="only this request, with its decisions explained")
    parser.add_argument("--tenant", help="only this tenant")
    parser.add_argument("--json", action="store_true", help="JSON lines")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """5 where the result asked for by --id is not there, else 0."""
    settings = read_settings(args)
    logs.configure(settings, quiet_client=True)
    ago = args.since if args.since is not None else None if args.follow else _RECENT_MS
    since = back(int(time.time() * 1000), ago) if ago is not None else None
    found = asyncio.run(ending(_print(settings, args, since)))
    if args.id is not None and not found:
        say(f"no result of {args.id} here; --since 1h looks further back, `edgeway audit` finds the rest")
        return Exit.UNANSWERED
    if not found and ago is not None:
        say(f"no results in the last {_words(ago)}; --since 1h looks further back, --follow waits")
    return Exit.OK


def _words(ms: int) -> str:
    return f"{ms / 60_000:.12g} minutes" if ms >= 60_000 else f"{ms / 1000:g} seconds"


async def _print(settings: Settings, args: argparse.Namespace, since: int | None) -> int:
    from edgeway.tail import Tail
    from schemas.topics import RESULTS

    found = 0
    async with Tail(settings, RESULTS, since) as tail:
        if not args.follow:
            async for records in tail.to_end():
                found += _show(args, records)
            return found
        while not (args.id is not None and found):
            found += _show(args, await tail.more())
    return found


def _show(args: argparse.Namespace, records: Iterable[Any]) -> int:
    from edgeway.cli.show import full, short
    from edgeway.client_records import read_result, to_json

    shown = 0
    for record in records:
        result = read_result(record)
        if result is None:
            say(f"{record.topic}/{record.partition} offset {record.offset} holds no result; it is left out")
            continue
        if args.id not in (None, result.id) or args.tenant not in (None, result.tenant):
            continue
        shown += 1
        if args.json:
            out_text(to_json(result))
        else:
            out("\n".join(full(result)) if args.id else short(result))
    return shown
