"""`edgeway broker`: the embedded Kafka alone."""

from __future__ import annotations

import argparse

from edgeway import logs
from edgeway.cli.arguments import Subparsers, command, read_settings


def add(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = command(subparsers, "broker", "run Apache Kafka without Docker or an installed Java")
    parser.add_argument(
        "--port", type=int, metavar="PORT", help="port of the first broker; without it a free one"
    )
    parser.add_argument("--brokers", type=int, choices=(1, 3), default=1, help="how many")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run it until interrupted; 0 after a signal."""
    settings = read_settings(args)
    logs.configure(settings)
    from edgeway.embedded.command import broker

    return broker(str(settings.data) if settings.data is not None else None, args.port, args.brokers)
