"""Serving: topics checked, signals heard, the door opened, everything stopped in order."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Container

from edgeway import forks, logs
from edgeway.errors import Exit, KafkaUnreachable
from edgeway.roles import collector
from edgeway.roles.door import Door, bound, door
from edgeway.roles.process import Process
from edgeway.roles.restart import restart
from edgeway.rules_watch import Reach
from edgeway.signals import stopping
from edgeway.topics_admin import require_topics, verify_topics
from schemas.rules import Rules
from schemas.topics import topics_for
from streams.delivery import Stuck, TwinTookOver, Unavailable
from streams.settings import Settings

log = logging.getLogger(__name__)

LOOK_S = 30.0


async def check_topics(settings: Settings, rules: Rules, only: Container[str] | None = None) -> None:
    """Log what is odd about the topics, or about `only` some of them.

    Raises:
        KafkaUnreachable, TopicsWrong: the role cannot work.
    """
    specs = [spec for spec in topics_for(rules, settings.partitions) if only is None or spec.name in only]
    for problem in await require_topics(settings, specs):
        # The number of partitions is the operator's choice once the topics are there.
        log.info("topics: %s", problem)


def warns_of_topics(settings: Settings) -> Reach:
    """What tells the operator of topics that new rules need and that are not there."""

    async def look(old: Rules, new: Rules) -> None:
        there = {spec.name for spec in topics_for(old, settings.partitions)}
        added = [spec for spec in topics_for(new, settings.partitions) if spec.name not in there]
        if not added:
            return
        async with asyncio.timeout(LOOK_S):
            problems = await verify_topics(settings, added)
        wrong = [f"{problem.topic} {problem.what}" for problem in problems if problem.severity == "error"]
        if wrong:
            log.warning(
                "rules %s need other topics: %s; mend them: edgeway topics apply --rules %s",
                new.version,
                "; ".join(wrong),
                settings.rules,
            )

    return look


async def serve(process: Process, announce: Callable[[], Awaitable[None]] | None = None) -> int:
    """Start `process`, serve until a signal or a failure, stop it in order; the exit code."""
    stop = hear_signals()
    try:
        http = await _opened(process)
    except BaseException:
        # Clients that were made and never closed complain when they are dropped.
        await process.stop()
        raise
    try:
        await _until_stopped(process, stop, announce)
    except Unavailable as error:
        raise KafkaUnreachable(process.settings.bootstrap, str(error)) from error
    finally:
        if http is not None:
            await http.stop()
    return Exit.OK


async def _opened(process: Process) -> Door | None:
    have = process.settings
    if have.port is None:
        return None
    # What a role answers over HTTP beside its state, and what it knows of that beside the process.
    health, routes = process.shared.get("health", process.health), process.shared.get("routes", ())
    middleware = process.shared.get("middleware", ())
    connections = process.shared.get("connections")
    listener = bound(have.host, have.port)
    forks.keep(listener.fileno)
    app = door(health, metrics=have.metrics, routes=routes, middleware=middleware)
    http = Door(app, listener, connections)
    await http.start()
    return http


async def built(
    name: str,
    settings: Settings,
    rules: Rules,
    add: Callable[[Process], None],
    *,
    before_rules: Reach | None = None,
    after_rules: Reach | None = None,
) -> Process:
    """A process with what `add` adds, which follows its rules file; where that fails, what was made is
    closed.
    """
    process = Process.create(name, settings, rules)
    try:
        add(process)
        process.watch_rules(before_rules, after_rules)
    except BaseException:
        await process.stop()
        raise
    return process


async def _until_stopped(
    process: Process, stop: asyncio.Event, announce: Callable[[], Awaitable[None]] | None
) -> None:
    began = time.monotonic()
    try:
        if await _started(process, stop):
            collector.settle()
            logs.started()
            if announce is not None:
                await announce()
            await process.host.wait(stop)
        log.info("%s stops", process.name)
    except (Stuck, TwinTookOver) as error:
        log.error("%s ends: %s", process.name, error)
        if isinstance(error, Stuck) and process.name == "worker" and process.settings.on_stuck == "restart":
            restart(time.monotonic() - began)
        # Draining would wait for what hangs, and a twin's partitions are no longer ours.
        _exit_now(Exit.FAILED)
    finally:
        await process.stop()


async def _started(process: Process, stop: asyncio.Event) -> bool:
    """Start `process`; False where it was told to stop before that was done."""
    starting = asyncio.ensure_future(process.start())
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({starting, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
        return starting.done()
    finally:
        stopped.cancel()
        starting.cancel()
        await asyncio.gather(starting, stopped, return_exceptions=True)


def hear_signals() -> asyncio.Event:
    """An event set by SIGINT, SIGTERM or SIGHUP; a second signal ends the process at once, uncommitted."""
    stop = asyncio.Event()

    def hear() -> None:
        if stop.is_set():
            _exit_now(Exit.INTERRUPTED)
        stop.set()

    loop = asyncio.get_running_loop()
    for number in stopping():
        loop.add_signal_handler(number, hear)
    return stop


def _exit_now(code: int) -> None:
    logging.shutdown()
    os._exit(code)
