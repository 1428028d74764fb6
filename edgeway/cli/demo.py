"""`edgeway demo`: the demonstration."""

from __future__ import annotations

import argparse
import dataclasses

from edgeway import logs
from edgeway.cli.arguments import Subparsers, command, read_settings


def add(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = command(
        subparsers, "demo", "start everything, send real questions, show who answered them and why"
    )
    parser.add_argument("--requests", type=int, metavar="N", help="questions to send (default 500)")
    parser.add_argument("--json", metavar="FILE", help="also write the figures to FILE as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the demonstration; 0 where every request was answered well."""
    settings = read_settings(args)
    if settings.log_level == "info":
        # The figures are what one came for.
        settings = dataclasses.replace(settings, log_level="warning")
    logs.configure(settings, quiet_client=True)
    from edgeway.demo import command as demonstration

    return demonstration.run(requests=args.requests, json_path=args.json)
