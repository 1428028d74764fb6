"""What the commands of roles run: one role, or all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from edgeway import signals
from edgeway.ending import end_within
from edgeway.errors import EdgewayError, Exit
from edgeway.roles.process import Process
from edgeway.roles.serving import built, check_topics, serve, warns_of_topics
from edgeway.rules_of import require_merges, rules_of
from schemas.rules import Rules
from schemas.topics import CANCELLATIONS, CAPABILITIES, JOINS, REQUESTS, RESULTS
from streams.settings import Settings

Add = Callable[[Process], None]
GATEWAY_TOPICS = frozenset((REQUESTS, RESULTS, JOINS, CANCELLATIONS, CAPABILITIES))


def run_router(settings: Settings) -> int:
    """Run the router until told to stop; the exit code."""
    from edgeway.roles.router import add_router

    def add(process: Process) -> None:
        add_router(process)

    def prepare(rules: Rules) -> Add:
        require_merges(rules)
        return add

    return _run(_one_role("router", settings, prepare))


def run_aggregator(settings: Settings) -> int:
    """Run the aggregator until told to stop; the exit code."""
    from edgeway.roles.aggregator import add_aggregator

    def prepare(rules: Rules) -> Add:
        require_merges(rules)
        return add_aggregator

    return _run(_one_role("aggregator", settings, prepare))


def run_worker(settings: Settings, *, kafka: bool = True) -> int:
    """Run a worker until told to stop, over HTTP alone without `kafka`; the exit code."""
    from edgeway.roles.alone import settings_alone, without_kafka
    from edgeway.roles.worker import add_worker, backends_of

    def prepare(rules: Rules) -> Add:
        backends = backends_of(settings, rules, kafka=kafka)

        def add(process: Process) -> None:
            if not kafka:
                without_kafka(process)
            add_worker(process, backends, kafka=kafka, http=True)

        return add

    if not kafka:
        settings = settings_alone(settings)
    return _run(_one_role("worker", settings, prepare, kafka=kafka))


def run_gateway(settings: Settings) -> int:
    """Run the gateway until told to stop; the exit code."""
    from edgeway.roles.alone import settings_alone, without_kafka
    from edgeway.roles.gateway import add_gateway

    def add(process: Process) -> None:
        # It reads without a group and writes by its exchange.
        without_kafka(process)
        add_gateway(process)

    return _run(_one_role("gateway", settings_alone(settings), lambda rules: add, topics=GATEWAY_TOPICS))


def run_up(settings: Settings, *, brokers: int = 1, broker_port: int | None = None) -> int:
    """Run every role in this process, on an embedded Kafka unless one is named; the exit code."""
    from edgeway.roles.up import up

    return _run(up(settings, brokers=brokers, broker_port=broker_port))


async def _one_role(
    name: str,
    settings: Settings,
    prepare: Callable[[Rules], Add],
    *,
    kafka: bool = True,
    topics: frozenset[str] | None = None,
) -> int:
    """Run one role. `topics`: the only ones that it needs; otherwise it needs all those of the rules."""
    with signals.obeyed_at_once(Exit.OK):
        rules = rules_of(settings)
        add = prepare(rules)
    if kafka:
        await check_topics(settings, rules, topics)
    after = warns_of_topics(settings) if kafka and topics is None else None
    return await serve(await built(name, settings, rules, add, after_rules=after))


def _run(main: Coroutine[Any, Any, int]) -> int:
    return signals.run(_ended(main), Exit.OK)


async def _ended(main: Coroutine[Any, Any, int]) -> int:
    code: int = Exit.FAILED
    try:
        code = await main
        return code
    except asyncio.CancelledError:
        code = Exit.OK
        raise
    except EdgewayError as error:
        code = error.exit_code
        raise
    finally:
        # Already here: the loop itself waits for the threads in which models are loaded.
        end_within(code)
