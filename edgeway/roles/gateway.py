"""The gateway role: HTTP at the process' port, Kafka behind it."""

from __future__ import annotations

import contextlib
import logging
import resource
import time
from collections.abc import Callable
from typing import Any

from edgeway.errors import EdgewayError
from edgeway.exchange.kafka import KafkaExchange
from edgeway.gateway.gateway import Gateway
from edgeway.roles.followers import Follower
from edgeway.roles.objects import objects_for
from edgeway.roles.process import Process
from edgeway.roles.tracing import tracer_for
from schemas.cards import Card
from schemas.rules import Rules
from schemas.topics import CAPABILITIES
from streams import metrics
from streams.delivery import Record
from streams.registry import Registry
from streams.registry.intake import observe_records
from streams.settings import Settings
from workers.http.origins import is_loopback

log = logging.getLogger(__name__)

REMEMBER_S = 600.0
"""Answers of so long ago are known to every replica."""
SPARE_CONNECTIONS = 12_288
"""Beyond those of the open requests: callers who are shed are told so, and probes are answered."""
SPARE_FILES = 256
LOOK_BACK_MS = 10_000


def add_gateway(process: Process, registry: Registry | None = None) -> Gateway:
    """Answer at the process' port, which the settings name. `registry` knows the cards of what runs; without
    one the heartbeats are followed.

    Raises:
        UsageError: an object store that cannot be opened.
    """
    have = process.settings
    exchange = KafkaExchange(have, source="edgeway/gateway", remember_s=REMEMBER_S)

    def ready() -> bool:
        return process.ready and exchange.is_healthy

    known = _heard(process) if registry is None else registry

    def cards() -> list[Card]:
        now = process.clock.now()
        found = (known.card(side, name, now) for side, name in process.rules.capabilities)
        return [card for card in found if card is not None]

    tracer, objects = tracer_for(process), objects_for(process)
    gateway = Gateway(exchange, have, process.rules, ready, objects=objects, cards=cards, tracer=tracer)
    stack = contextlib.AsyncExitStack()

    async def enter() -> None:
        await stack.enter_async_context(exchange)

    async def drain() -> None:
        # Other roles of this process may have to answer what is waited for, and then stop themselves.
        left = process.stop_by - time.monotonic()
        await gateway.drain(max(0.0, left / 2 if process.inlets else left))

    async def tell() -> None:
        tokens = "bearer tokens of the rules" if gateway.tenants.closed else "no tokens"
        log.info("the gateway answers at %s (%s); /docs tells more", url_of(process.settings), tokens)
        warn_if_open(process, gateway)

    async def look() -> None:
        if exchange.has_failed:
            raise EdgewayError("the reader of results ended by an error; see the log before this")
        gateway.lobby.prune()

    _follow(process, gateway)
    process.host.every(1.0, "watch of the exchange", look)
    process.before.append(enter)
    process.once_ready.append(tell)
    process.first.append(drain)
    process.after.append(stack.aclose)
    process.shared["health"] = _health(process, gateway, exchange)
    process.shared["routes"] = gateway.routes()
    process.shared["middleware"] = gateway.middleware()
    process.shared["connections"] = connections_for(have.gateway_open)
    metrics.GATEWAY_OPEN.set_function(lambda: gateway.lobby.open)
    metrics.GATEWAY_BYTES.set_function(lambda: gateway.lobby.bytes)
    return gateway


def _follow(process: Process, gateway: Gateway) -> None:
    """Have the gateway follow the rules file."""

    def prepare(rules: Rules) -> Callable[[], None]:
        def adopt() -> None:
            gateway.adopt(rules)
            warn_if_open(process, gateway)

        return adopt

    process.on_rules.append(prepare)


def _health(process: Process, gateway: Gateway, exchange: KafkaExchange) -> Callable[[], dict[str, Any]]:
    """What `/healthz` tells: of the process, and of the exchange."""
    shown: Callable[[], dict[str, Any]] = process.shared.get("health", process.health)

    def health() -> dict[str, Any]:
        said, state = shown(), exchange.health()
        more = {**state._asdict(), "open": gateway.lobby.open}
        return {**said, "ready": said["ready"] and state.ok, "gateway": more}

    return health


def _heard(process: Process) -> Registry:
    """What the heartbeats say, for the documents alone."""
    registry = Registry()

    def take(record: Record) -> None:
        observe_records(registry, [record])

    follower = Follower(process, CAPABILITIES, process.clock.now() - LOOK_BACK_MS, take)
    process.before.append(follower.start)
    process.after.append(follower.stop)
    return registry


def url_of(settings: Settings) -> str:
    """Where this machine reaches the gateway."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104 - compared
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{settings.port}"


def warn_if_open(process: Process, gateway: Gateway) -> None:
    """Say that everybody may call, where that is more than this machine."""
    if not gateway.tenants.closed and not is_loopback(process.settings.host):
        log.warning(
            "the gateway asks nobody for a token and can be reached from other machines: whoever reaches "
            "%s may call; `edgeway token TENANT` makes a token and the line for the rules file",
            url_of(process.settings),
        )


def connections_for(callers: int) -> int:
    """How many connections a gateway takes of which so many may wait. The process' limit of open files is
    raised for them as far as the system lets it."""
    wanted = callers + SPARE_CONNECTIONS + SPARE_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most < callers + SPARE_FILES:
        log.warning(
            "this process may open %d files, and --gateway-open %d wants more: raise `ulimit -n`",
            most,
            callers,
        )
    return max(1, most - SPARE_FILES)
