"""`edgeway gateway`: the role alone."""

from __future__ import annotations

import argparse

from edgeway.cli import role
from edgeway.cli.arguments import Subparsers, command
from edgeway.errors import UsageError


def add(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    command(
        subparsers, "gateway", "answer requests over HTTP: POST /route, results, events, single capabilities"
    ).set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the role until it is told to stop; its exit code."""
    settings = role.start(args)
    if settings.port is None:
        raise UsageError("the gateway is HTTP: give it a --port, for example --port 8080")
    from edgeway.roles import run_gateway

    return run_gateway(settings)
