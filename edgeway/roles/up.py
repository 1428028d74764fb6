"""`edgeway up`: every role in one process, on an embedded Kafka unless one is named."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import shutil
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from edgeway import signals
from edgeway.errors import EdgewayError, Exit
from edgeway.invocation import invocation
from edgeway.roles.aggregator import add_aggregator
from edgeway.roles.gateway import add_gateway, url_of
from edgeway.roles.objects import with_objects
from edgeway.roles.process import Process
from edgeway.roles.router import add_router
from edgeway.roles.serving import built, serve
from edgeway.roles.worker import add_worker, backends_of, serves_fallbacks
from edgeway.rules_of import require_merges, rules_of
from edgeway.topics_admin import apply_topics
from schemas.rules import Rules
from schemas.topics import topics_for
from streams.settings import Settings
from workers.backends import Backend

log = logging.getLogger(__name__)

BROKER_PORT = 9092
HEARD_S = 5.0


async def up(settings: Settings, *, brokers: int = 1, broker_port: int | None = None) -> int:
    """Run until told to stop; the exit code.

    Raises:
        EdgewayError: what keeps it from starting.
    """
    with signals.obeyed_at_once(Exit.OK):
        rules = rules_of(settings)
        require_merges(rules)
        backends = served(settings, rules)
    async with contextlib.AsyncExitStack() as stack:
        if settings.kafka is None:
            port = BROKER_PORT if broker_port is None else broker_port
            settings = await embedded_kafka(stack, settings, brokers=brokers, port=port)
        settings = with_objects(stack, settings)
        await make_topics(settings, rules)
        make = partial(_make_new_topics, settings)
        process = await built(
            "up", settings, rules, lambda process: add_all(process, backends), before_rules=make
        )

        async def announce() -> None:
            sys.stderr.write(_announcement(settings, bool(backends)))

        return await serve(process, announce)


async def make_topics(settings: Settings, rules: Rules) -> None:
    """Make the topics that `rules` need; log what is odd about those that are there.

    Raises:
        EdgewayError: Kafka does not answer, or refuses.
    """
    report = await apply_topics(settings, topics_for(rules, settings.partitions))
    for problem in report.problems:
        log.warning("topics: %s", problem)


async def _make_new_topics(settings: Settings, old: Rules, new: Rules) -> None:
    there = set(topics_for(old, settings.partitions))
    if not there.issuperset(topics_for(new, settings.partitions)):
        await make_topics(settings, new)


def _announcement(settings: Settings, serves: bool) -> str:
    command = invocation(sys.argv[0], sys.executable, Path.cwd(), shutil.which)
    text = f"edgeway is up on Kafka {settings.bootstrap}. Send it something:\n"
    text += f"  {command} send --kafka {settings.bootstrap} --task TASK --text '...' --wait\n"
    if settings.port is not None:
        text += "or over HTTP:\n"
        text += f'  curl -X POST {url_of(settings)}/route -d \'{{"task": "TASK", "text": "..."}}\'\n'
    if not serves:
        text += (
            "warning: no worker of this process serves anything: name an app with --app FILE.py or\n"
            "--app MODULE, or under `apps` in the rules file, or start an `edgeway worker` beside it\n"
        )
    return text


def served(settings: Settings, rules: Rules) -> list[Backend]:
    """What the workers of the process serve: nothing where no app is named.

    Raises:
        UsageError: an app that does not load, or capabilities or a side without an app.
    """
    asked = settings.app or rules.apps or settings.capabilities or settings.side or settings.models
    if asked or serves_fallbacks(rules):
        return backends_of(settings, rules)
    return []


def add_all(process: Process, backends: Sequence[Backend]) -> None:
    """Add all roles to `process`; workers only where there is something to serve."""
    name = add_worker(process, backends) if backends else None
    add_aggregator(process)
    registry = add_router(process)
    if process.settings.port is not None:
        add_gateway(process, registry)

    async def heard() -> None:
        # A request that came before the first beat was read would find no worker.
        until = time.monotonic() + HEARD_S
        while name is not None and not registry.knows(name):
            if time.monotonic() > until:
                log.warning("the router has not heard the workers of this process for %.0f s", HEARD_S)
                return
            await asyncio.sleep(0.02)

    process.once_ready.append(heard)


async def embedded_kafka(
    stack: contextlib.AsyncExitStack, settings: Settings, *, brokers: int = 1, port: int | None = None
) -> Settings:
    """Start a Kafka that ends with `stack`; the settings that name it. Without `port` it takes a free one.

    Raises:
        EdgewayError: it cannot be started; the text says why.
    """
    try:
        from edgeway.embedded import BrokerSettings, EmbeddedKafka, EmbeddedKafkaError
    except ModuleNotFoundError as error:
        raise EdgewayError(
            f"the embedded Kafka needs {error.name}: install edgeway[embedded], or name a Kafka with --kafka"
        ) from error
    try:
        wanted = BrokerSettings(data=settings.data, port=port, brokers=3 if brokers == 3 else 1)
        kafka = await stack.enter_async_context(EmbeddedKafka(wanted))
    except EmbeddedKafkaError as error:
        failed = EdgewayError(str(error))
        failed.exit_code = Exit(error.exit_code)
        raise failed from error
    replication = settings.replication if brokers == 1 else 3
    return dataclasses.replace(settings, kafka=kafka.bootstrap, replication=replication)
