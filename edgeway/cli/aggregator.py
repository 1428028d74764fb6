"""`edgeway aggregator`: the role alone."""

from __future__ import annotations

import argparse

from edgeway.cli import role
from edgeway.cli.arguments import Subparsers, command


def add(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    command(subparsers, "aggregator", "join the answers of a request and publish its result").set_defaults(
        run=run
    )


def run(args: argparse.Namespace) -> int:
    """Run the role until it is told to stop; its exit code."""
    settings = role.start(args)
    from edgeway.roles import run_aggregator

    return run_aggregator(settings)
