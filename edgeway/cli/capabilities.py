"""`edgeway capabilities list|show`: what workers can do now, and how they are."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING

from edgeway import logs
from edgeway.cli.arguments import Subparsers, command, positive, read_settings
from edgeway.cli.output import bar, out, out_json, say
from edgeway.errors import Exit

if TYPE_CHECKING:
    from edgeway.capabilities import Served
    from streams.settings import Settings


def add(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "capabilities", help="what workers can do now, and how they are", allow_abbrev=False
    )
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    listed = command(verbs, "list", "list every capability that workers serve now", "capabilities")
    listed.set_defaults(name=None, run=run_list)
    show = command(verbs, "show", "show all that is known of a capability", "capabilities")
    show.usage = "%(prog)s NAME [flags]"
    show.add_argument("name", metavar="NAME", help="for example local/nlp/summarize, or nlp/summarize")
    show.set_defaults(run=run_show)
    for verb in (listed, show):
        verb.add_argument("--app", metavar="APP", help="what this app would offer, without any Kafka")
        verb.add_argument(
            "--wait", type=positive, default=0.0, metavar="S", help="wait up to so many seconds for a worker"
        )
        verb.add_argument("--json", action="store_true", help="the report as JSON")


def run_list(args: argparse.Namespace) -> int:
    """5 where no worker serves anything."""
    from edgeway.capabilities import summary
    from edgeway.capabilities_text import table

    settings = _settings(args)
    found = _found(args, settings)
    if args.json:
        out_json([summary(each) for each in found])
    elif found:
        for line in table(found):
            out(line)
    if not found:
        say(_nobody(settings))
    return Exit.OK if found else Exit.UNANSWERED


def run_show(args: argparse.Namespace) -> int:
    """5 where nobody serves it."""
    from edgeway.capabilities import named, whole
    from edgeway.capabilities_text import page

    settings = _settings(args)
    found = _found(args, settings)
    chosen = named(found, args.name)
    if args.json:
        out_json([whole(each) for each in chosen])
    else:
        for each in chosen:
            out("\n".join(page(each)))
    if not chosen:
        known = ", ".join(each.name for each in found)
        say(f"nobody serves {args.name}; there are {known}" if known else _nobody(settings))
    return Exit.OK if chosen else Exit.UNANSWERED


def _settings(args: argparse.Namespace) -> Settings:
    settings = read_settings(args)
    logs.configure(settings, quiet_client=True)
    return settings


def _found(args: argparse.Namespace, settings: Settings) -> list[Served]:
    from edgeway.capabilities import alive, of_app

    if args.app is not None:
        return of_app(args.app)
    with bar("waiting for heartbeats", shown=args.wait > 0):
        found = asyncio.run(alive(settings, args.wait, args.name))
        return found or (asyncio.run(alive(settings, 0.0)) if args.name else [])


def _nobody(settings: Settings) -> str:
    return (
        f"no worker beats on {settings.bootstrap}: start one (edgeway worker --app MODULE), wait for it\n"
        "with --wait 10, or look at an app without Kafka: --app MODULE"
    )
