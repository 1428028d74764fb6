"""`edgeway worker`: serves capabilities."""

from __future__ import annotations

import argparse

from edgeway.cli import role
from edgeway.cli.arguments import Subparsers, command
from edgeway.errors import UsageError


def add(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    command(subparsers, "worker", "run models: serve capabilities").set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the role until it is told to stop; its exit code."""
    settings = role.start(args)
    if not (settings.capabilities or settings.side or settings.app or settings.models or settings.rules):
        raise UsageError(
            "a worker of nothing: give --capabilities local/nlp/intent,..., or --side local|cloud for all\n"
            "that the rules name there, or --app MODULE, or --models FOLDER"
        )
    from edgeway.roles import run_worker

    return run_worker(settings)
