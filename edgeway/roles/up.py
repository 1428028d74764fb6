"""`edgeway up`: every role in one process, on an embedded Kafka unless one is named."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import sys

from edgeway.errors import EdgewayError, Exit
from edgeway.roles.aggregator import add_aggregator
from edgeway.roles.process import Process
from edgeway.roles.router import add_router
from edgeway.roles.serving import serve
from edgeway.roles.worker import add_worker, backends_of
from edgeway.rules_of import rules_of
from edgeway.topics_admin import apply_topics
from schemas.rules import Rules
from schemas.topics import topics_for
from streams.settings import Settings

log = logging.getLogger(__name__)

BROKER_PORT = 9092


async def up(settings: Settings, *, brokers: int = 1, broker_port: int | None = None) -> int:
    """Run until told to stop; the exit code.

    Raises:
        EdgewayError: what keeps it from starting.
    """
    async with contextlib.AsyncExitStack() as stack:
        if settings.kafka is None:
            port = BROKER_PORT if broker_port is None else broker_port
            settings = await embedded_kafka(stack, settings, brokers=brokers, port=port)
        rules = rules_of(settings)
        report = await apply_topics(settings, topics_for(rules, settings.partitions))
        for problem in report.problems:
            log.warning("topics: %s", problem)
        process = build(settings, rules)

        async def announce() -> None:
            sys.stderr.write(
                f"edgeway is up on Kafka {settings.bootstrap}. Send it something:\n"
                f"  edgeway send --kafka {settings.bootstrap} --task TASK --text '...' --wait\n"
            )

        return await serve(process, announce)


def build(settings: Settings, rules: Rules) -> Process:
    """A process of all roles; workers only where an app is named."""
    process = Process.create("up", settings, rules)
    if settings.app or rules.apps:
        add_worker(process, backends_of(process))
    add_aggregator(process)
    add_router(process)
    return process


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
