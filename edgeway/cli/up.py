"""`edgeway up`: everything in one process."""

from __future__ import annotations

import argparse
import os

from edgeway.cli import role
from edgeway.cli.arguments import Subparsers, command
from edgeway.cli.output import say
from edgeway.errors import EdgewayError, KafkaUnreachable, UsageError
from streams.settings import Settings


def add(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = command(
        subparsers, "up", "run all roles in one process, with a Kafka of its own unless --kafka is given"
    )
    parser.add_argument(
        "--brokers", type=int, choices=(1, 3), help="brokers of the embedded Kafka (default 1)"
    )
    parser.add_argument(
        "--broker-port",
        type=int,
        metavar="PORT",
        help="port of the embedded Kafka (default 9092)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run all roles until told to stop; the exit code."""
    settings = role.start(args)
    from edgeway.roles.up import BROKER_PORT

    brokers = args.brokers or 1
    port = BROKER_PORT if args.broker_port is None else args.broker_port
    if settings.kafka is None:
        _check_ports(settings, brokers, port)
    elif ignored := _ignored(args, settings):
        say(f"warning: {ignored} ignored: {_origin(args)} names a Kafka, so `up` starts none of its own")
    from edgeway.roles import run_up

    try:
        return run_up(settings, brokers=brokers, broker_port=port)
    except KafkaUnreachable as error:
        if settings.kafka is None:
            raise
        text = f"{error}\n{_origin(args)} keeps `up` from starting a Kafka of its own: leave it out for that"
        failed = EdgewayError(text)
        failed.exit_code = error.exit_code
        raise failed from error


def _check_ports(settings: Settings, brokers: int, port: int) -> None:
    if settings.port is not None and port <= settings.port < port + brokers:
        raise UsageError(
            f"--port {settings.port} is a port of the embedded Kafka: give another --port or --broker-port"
        )


def _ignored(args: argparse.Namespace, settings: Settings) -> str:
    given = {"--brokers": args.brokers, "--broker-port": args.broker_port, "--data": settings.data}
    names = [flag for flag, value in given.items() if value is not None]
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}" if names else ""


def _origin(args: argparse.Namespace) -> str:
    if args.setting_kafka is not None:
        return "--kafka"
    return "EDGEWAY_KAFKA" if os.environ.get("EDGEWAY_KAFKA") else "the settings file"
