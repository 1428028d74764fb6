"""Running a process of roles: topics checked, signals heard, the door opened, everything stopped in order."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any

import uvloop

from edgeway.errors import Exit, KafkaUnreachable
from edgeway.roles.door import Door, bound, door
from edgeway.roles.process import Process
from edgeway.rules_of import rules_of
from edgeway.topics_admin import require_topics
from schemas.rules import Rules
from schemas.topics import topics_for
from streams.delivery import Stuck, TwinTookOver, Unavailable
from streams.settings import Settings

log = logging.getLogger(__name__)

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
    process = Process.create(name, settings, rules)
    add(process)
    await check_topics(settings, rules)
    return await serve(process)


async def check_topics(settings: Settings, rules: Rules) -> None:
    """Log what is odd about the topics.

    Raises:
        KafkaUnreachable, TopicsWrong: the role cannot work.
    """
    specs = topics_for(rules, settings.partitions)
    for problem in await require_topics(settings, specs):
        # The number of partitions is the operator's choice once the topics are there.
        log.info("topics: %s", problem)


async def serve(process: Process, announce: Callable[[], Awaitable[None]] | None = None) -> int:
    """Start `process`, serve until a signal or a failure, stop it in order; the exit code."""
    stop = hear_signals()
    have = process.settings
    http: Door | None = None
    if have.port is not None:
        http = Door(door(process.health, metrics=have.metrics), bound(have.host, have.port))
        await http.start()
    try:
        await _until_stopped(process, stop, announce)
    except Unavailable as error:
        raise KafkaUnreachable(have.bootstrap, str(error)) from error
    except (Stuck, TwinTookOver) as error:
        log.error("%s ends: %s", process.name, error)
        # Draining would wait for what hangs, and a twin's partitions are no longer ours.
        _exit_now(Exit.FAILED)
    finally:
        if http is not None:
            await http.stop()
    return Exit.OK


async def _until_stopped(
    process: Process, stop: asyncio.Event, announce: Callable[[], Awaitable[None]] | None
) -> None:
    try:
        await process.start()
        if announce is not None:
            await announce()
        await process.host.wait(stop)
        log.info("%s stops", process.name)
    finally:
        await process.stop()


def hear_signals() -> asyncio.Event:
    """An event set by SIGINT or SIGTERM; a second signal ends the process at once, uncommitted."""
    stop = asyncio.Event()

    def hear() -> None:
        if stop.is_set():
            _exit_now(Exit.INTERRUPTED)
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, hear)
    return stop


def _exit_now(code: int) -> None:
    logging.shutdown()
    os._exit(code)


def _run(main: Any) -> int:
    return int(uvloop.run(main))
