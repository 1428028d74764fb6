"""What the commands of roles run: one role, or all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edgeway import signals
from edgeway.errors import Exit
from edgeway.roles.process import Process
from edgeway.roles.serving import check_topics, serve
from edgeway.rules_of import rules_of
from streams.settings import Settings

Add = Callable[[Process], None]


def run_router(settings: Settings) -> int:
    """Run the router until told to stop; the exit code."""
    from edgeway.roles.router import add_router

    def add(process: Process) -> None:
        add_router(process)

    return _run(_one_role("router", settings, add))


def run_aggregator(settings: Settings) -> int:
    """Run the aggregator until told to stop; the exit code."""
    from edgeway.roles.aggregator import add_aggregator

    return _run(_one_role("aggregator", settings, add_aggregator))


def run_worker(settings: Settings) -> int:
    """Run a worker until told to stop; the exit code."""
    from edgeway.roles.worker import add_worker, backends_of

    def add(process: Process) -> None:
        add_worker(process, backends_of(process))

    return _run(_one_role("worker", settings, add))


def run_up(settings: Settings, *, brokers: int = 1, broker_port: int | None = None) -> int:
    """Run every role in this process, on an embedded Kafka unless one is named; the exit code."""
    from edgeway.roles.up import up

    return _run(up(settings, brokers=brokers, broker_port=broker_port))


async def _one_role(name: str, settings: Settings, add: Add) -> int:
    rules = rules_of(settings)
    # First: clients that were made and never started complain when they are dropped.
    await check_topics(settings, rules)
    process = Process.create(name, settings, rules)
    add(process)
    return await serve(process)


def _run(main: Any) -> int:
    return signals.run(main, Exit.OK)
