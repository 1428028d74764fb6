"""The worker role: subtasks in, partials out, one inlet a capability, and heartbeats for all of them."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from edgeway.errors import UsageError
from edgeway.models_serving import beside, follow_models, models_of
from edgeway.roles.alone import model_watchdog
from edgeway.roles.budgets import budget_for
from edgeway.roles.cancellations import follow_cancellations
from edgeway.roles.capability_door import CapabilityDoor
from edgeway.roles.objects import objects_for
from edgeway.roles.process import Process
from edgeway.roles.tracing import tracer_for
from schemas.cards import Offer
from schemas.messages import Side
from schemas.rules import Rules
from streams.settings import Settings
from workers.backends import Backend, RulesFollower
from workers.backends.fallback import fallbacks_of
from workers.catalogue import backends_for
from workers.desk import Desk
from workers.errors import WorkerError
from workers.heartbeats import Heartbeats
from workers.http.paths import full
from workers.payments import BudgetPayer
from workers.service import Limits
from workers.worker import Worker

log = logging.getLogger(__name__)

WATCH_S = 1.0
MOST_NAMES = 5
"""Names in the log line that tells where capabilities are called."""


def backends_of(settings: Settings, rules: Rules, *, kafka: bool = True) -> list[Backend]:
    """What the settings ask for: of the app given, or else of those that the rules name; and the cloud
    capabilities that the rules put behind a `fallback_url`, where none of these apps offers them. On `kafka`
    what the rules do not use is left out.

    Raises:
        UsageError: an app that does not load, an unknown capability, or nothing to serve.
    """
    apps = (settings.app,) if settings.app else rules.apps
    if not apps and not serves_fallbacks(rules) and settings.models is None:
        raise UsageError("no app to serve: name one with --app MODULE, or under `apps` in the rules file")
    try:
        models = models_of(settings)

        def fill(offered: frozenset[tuple[Side, str]]) -> Iterable[Backend]:
            return [*models, *fallbacks_of(rules, beside(models, offered))]

        found = list(backends_for(_side(settings), apps, settings.capabilities or None, fill))
    except WorkerError as error:
        raise UsageError(str(error)) from error
    return found if settings.rules is None or settings.capabilities or not kafka else _used(found, rules)


def _used(found: list[Backend], rules: Rules) -> list[Backend]:
    # What no task uses has no topic, and a worker cannot wait for one.
    used = [each for each in found if (each.card.side, each.card.capability) in rules.capabilities]
    unused = sorted(f"{b.card.side}/{b.card.capability}" for b in found if b not in used)
    if not used:
        raise UsageError(f"the rules use none of {', '.join(unused)}; name one in a task, or another app")
    if unused:
        log.info("not served, since no task of the rules uses it: %s", ", ".join(unused))
    return used


def serves_fallbacks(rules: Rules) -> bool:
    """Whether a worker has something to serve without any app."""
    return any(task.fallback_url is not None for task in rules.tasks.values())


def follow_rules(process: Process, backends: Sequence[Backend]) -> None:
    """Have the backends that read the rules follow them."""
    followers = [backend for backend in backends if isinstance(backend, RulesFollower)]

    def prepare(rules: Rules) -> Callable[[], None]:
        try:
            adopts = [backend.prepare(rules) for backend in followers]
        except WorkerError as error:
            raise UsageError(str(error)) from error

        def adopt() -> None:
            for each in adopts:
                each()

        return adopt

    prepare(process.rules)()
    process.on_rules.append(prepare)


def add_worker(
    process: Process, backends: Sequence[Backend], *, kafka: bool = True, http: bool = False
) -> str:
    """Add one worker for each of `backends`: a slow model then holds up no other. They read their topics and
    beat where there is a `kafka`, and answer at the process' port where `http` asks for it. Gives the name
    that they beat under.
    """
    have = process.settings
    name = process.slot or f"{socket.gethostname()}-{os.getpid()}"
    budget = budget_for(process)
    payer = None if budget is None else BudgetPayer(budget, process.clock)
    workers = _workers(process, backends, name, payer, kafka=kafka)
    desk = Desk(workers, process.clock)
    heartbeats = _read(process, workers, name) if kafka else None

    async def start() -> None:
        try:
            await asyncio.gather(*(worker.start() for worker in workers))
        except WorkerError as error:
            raise UsageError(str(error)) from error
        for worker in workers:
            process.host.add_task(f"worker {worker.topics[0]}", worker.watch)

    async def stop() -> None:
        # The lanes are gone by now: what still runs for them can be waited for, but no longer answered.
        patience = have.stop_s if door is not None and door.calls else have.drain_s
        left = min(patience, max(0.0, process.stop_by - time.monotonic()))
        farewells = [] if heartbeats is None else [heartbeats.stop()]
        await asyncio.gather(*farewells, *(worker.stop(left) for worker in workers))
        if payer is not None:
            await payer.stop()

    def price(rules: Rules) -> Callable[[], None]:
        def adopt() -> None:
            for worker in workers:
                worker.price(rules.prices)

        return adopt

    door = _opened(process, desk) if http and have.port is not None else None
    if door is None:
        process.shared["health"] = lambda: {**process.health(), "waits_for": desk.waits_for()}
    follow_rules(process, backends)
    price(process.rules)()
    process.on_rules.append(price)
    process.before.append(start)
    process.before.append(follow_models(have, backends, workers, process.host.every))
    process.after.append(stop)
    process.host.every(WATCH_S, "watchdog of models", model_watchdog(desk, have.hang_s or have.watchdog_s))
    return name


def _workers(
    process: Process, backends: Sequence[Backend], name: str, payer: BudgetPayer | None, *, kafka: bool
) -> list[Worker]:
    """A worker for each of `backends`."""
    cancelled = follow_cancellations(process) if kafka else frozenset[str]()
    tracer, objects = tracer_for(process), objects_for(process)
    return [
        Worker(
            [backend],
            name=name,
            clock=process.clock,
            limits=_limits(process.settings, backend),
            payer=payer,
            cancelled=cancelled,
            tracer=tracer,
            objects=objects,
        )
        for backend in backends
    ]


def _read(process: Process, workers: Sequence[Worker], name: str) -> Heartbeats:
    """Feed `workers` with their topics, and beat once they are assigned."""
    for worker in workers:
        inlet = process.add_inlet(worker, worker.topics, worker.topics[0])
        process.running_since[inlet.settings.group] = partial(getattr, worker, "stuck_since")

    def offers() -> tuple[Offer, ...]:
        return tuple(offer for worker in workers for offer in worker.offers())

    def news() -> tuple[object, ...]:
        return tuple(worker.news() for worker in workers)

    heartbeats = Heartbeats(name, offers, process.outlet.send, process.clock, news=news)

    async def beat() -> None:
        heartbeats.start()

    process.once_ready.append(beat)
    return heartbeats


def _opened(process: Process, desk: Desk) -> CapabilityDoor:
    """Answer at the process' port, and let its health tell of models that hang."""
    door = CapabilityDoor(desk, process.settings, lambda: process.ready)

    def health() -> dict[str, Any]:
        shown, hung_s = process.health(), desk.hung_s(time.monotonic())
        ok = shown["ok"] and hung_s < (process.settings.hang_s or process.settings.watchdog_s) / 2
        more = {"hung_s": round(hung_s, 1), "http_calls": door.calls}
        return {**shown, **more, "ok": ok, "waits_for": desk.waits_for()}

    async def tell() -> None:
        have = process.settings
        host = f"[{have.host}]" if ":" in have.host else have.host
        paths = [full(name) for name in desk.names()]
        more = f" and {len(paths) - MOST_NAMES} more" if len(paths) > MOST_NAMES else ""
        shown = ", ".join(paths[:MOST_NAMES])
        log.info("POST %s%s: answered at http://%s:%d; /docs tells more", shown, more, host, have.port)

    process.once_ready.append(tell)
    process.shared["routes"] = door.routes()
    process.shared["health"] = health
    return door


def _limits(settings: Settings, backend: Backend) -> Limits:
    # What waits for a network needs threads of its own; they take no core from the models.
    threads = max(settings.model_threads, getattr(backend, "threads", 1))
    return Limits(max_bytes=settings.window_bytes, threads=threads)


def _side(settings: Settings) -> Side | None:
    return None if settings.side is None else ("local" if settings.side == "local" else "cloud")
