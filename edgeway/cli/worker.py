"""`edgeway worker`: serves capabilities."""

from __future__ import annotations

import argparse

from edgeway.cli import role
from edgeway.cli.arguments import Subparsers, command
from edgeway.errors import UsageError


def add(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = command(subparsers, "worker", "run models: serve capabilities, from Kafka and over HTTP")
    parser.add_argument(
        "--no-kafka", action="store_true", help="serve HTTP alone, at --port: no topics, no heartbeats"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the role until it is told to stop; its exit code."""
    settings = role.start(args)
    if not (settings.capabilities or settings.side or settings.app or settings.models or settings.rules):
        raise UsageError(
            "a worker of nothing: give --capabilities local/nlp/intent,..., or --side local|cloud for all\n"
            "that the rules name there, or --app MODULE, or --models FOLDER"
        )
    if args.no_kafka and settings.port is None:
        raise UsageError("--no-kafka serves HTTP alone: give it a --port")
    from edgeway.roles import run_worker

    return run_worker(settings, kafka=not args.no_kafka)
