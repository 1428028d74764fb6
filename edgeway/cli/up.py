"""`edgeway up`: everything in one process."""

from __future__ import annotations

import argparse

from edgeway.cli import role
from edgeway.cli.arguments import Subparsers, command


def add(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = command(
        subparsers, "up", "run all roles in one process, with a Kafka of its own unless --kafka is given"
    )
    parser.add_argument(
        "--brokers", type=int, choices=(1, 3), default=1, help="brokers of the embedded Kafka"
    )
    parser.add_argument(
        "--broker-port", type=int, metavar="PORT", help="port of the embedded Kafka (default 9092)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run all roles until told to stop; the exit code."""
    settings = role.start(args)
    from edgeway.roles import run_up

    return run_up(settings, brokers=args.brokers, broker_port=args.broker_port)
