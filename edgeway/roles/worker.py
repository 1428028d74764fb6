"""The worker role: subtasks in, partials out, one inlet a capability, and heartbeats for all of them."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from edgeway.errors import UsageError
from edgeway.models_serving import follow_models, models_of
from edgeway.roles.budgets import budget_for
from edgeway.roles.process import Process
from schemas.cards import Offer
from schemas.messages import Side
from schemas.rules import Rules
from streams.settings import Settings
from workers.backends import Backend, RulesFollower
from workers.backends.fallback import fallbacks_of
from workers.catalogue import backends_for
from workers.errors import WorkerError
from workers.heartbeats import Heartbeats
from workers.payments import BudgetPayer
from workers.service import Limits
from workers.worker import Worker

log = logging.getLogger(__name__)


def backends_of(settings: Settings, rules: Rules) -> list[Backend]:
    """What the settings ask for: of the app given, or else of those that the rules name; and the cloud
    capabilities that the rules put behind a `fallback_url`, where none of these apps offers them.

    Raises:
        UsageError: an app that does not load, an unknown capability, or nothing to serve.
    """
    apps = (settings.app,) if settings.app else rules.apps
    if not apps and not serves_fallbacks(rules) and settings.models is None:
        raise UsageError("no app to serve: name one with --app MODULE, or under `apps` in the rules file")
    try:
        models = models_of(settings)

        def fill(offered: frozenset[tuple[Side, str]]) -> Iterable[Backend]:
            pulled = frozenset((model.card.side, model.card.capability) for model in models)
            return [*models, *fallbacks_of(rules, offered | pulled)]

        found = list(backends_for(_side(settings), apps, settings.capabilities or None, fill))
    except WorkerError as error:
        raise UsageError(str(error)) from error
    return found if settings.rules is None or settings.capabilities else _used(found, rules)


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


def add_worker(process: Process, backends: Sequence[Backend]) -> str:
    """Add one worker for each of `backends`: a slow model then holds up no other. Gives the
    name that they beat under."""
    have = process.settings
    name = process.slot or f"{socket.gethostname()}-{os.getpid()}"
    budget = budget_for(process)
    payer = None if budget is None else BudgetPayer(budget, process.clock)
    workers = [
        Worker([backend], name=name, clock=process.clock, limits=_limits(have, backend), payer=payer)
        for backend in backends
    ]

    def offers() -> tuple[Offer, ...]:
        return tuple(offer for worker in workers for offer in worker.offers())

    heartbeats = Heartbeats(name, offers, process.outlet.send, process.clock)

    async def start() -> None:
        await asyncio.gather(*(worker.start() for worker in workers))
        for worker in workers:
            process.host.add_task(f"worker {worker.topics[0]}", worker.watch)

    async def beat() -> None:
        heartbeats.start()

    async def stop() -> None:
        # The lanes are gone by now: what still runs can be waited for, but no longer answered.
        left = min(have.drain_s, max(0.0, process.stop_by - time.monotonic()))
        await asyncio.gather(heartbeats.stop(), *(worker.stop(left) for worker in workers))
        if payer is not None:
            await payer.stop()

    def price(rules: Rules) -> Callable[[], None]:
        def adopt() -> None:
            for worker in workers:
                worker.price(rules.prices)

        return adopt

    for worker in workers:
        inlet = process.add_inlet(worker, worker.topics, worker.topics[0])
        process.running_since[inlet.settings.group] = partial(getattr, worker, "stuck_since")
    follow_rules(process, backends)
    price(process.rules)()
    process.on_rules.append(price)
    process.before.append(start)
    process.before.append(follow_models(have, backends, workers, process.host.every))
    process.once_ready.append(beat)
    process.after.append(stop)
    return name


def _limits(settings: Settings, backend: Backend) -> Limits:
    # What waits for a network needs threads of its own; they take no core from the models.
    threads = max(settings.model_threads, getattr(backend, "threads", 1))
    return Limits(max_bytes=settings.window_bytes, threads=threads)


def _side(settings: Settings) -> Side | None:
    return None if settings.side is None else ("local" if settings.side == "local" else "cloud")
