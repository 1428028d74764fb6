"""The router role: requests in, plans and first subtasks out."""

from __future__ import annotations

from collections.abc import Callable

from edgeway.roles.budgets import budget_for
from edgeway.roles.caches import cache_for
from edgeway.roles.cancellations import follow_cancellations
from edgeway.roles.followers import Follower
from edgeway.roles.objects import objects_for
from edgeway.roles.planning import planner_of
from edgeway.roles.process import Process
from edgeway.roles.tracing import tracer_for
from schemas.rules import Rules
from schemas.topics import CAPABILITIES, REQUESTS
from streams.delivery import Record
from streams.registry import Registry
from streams.registry.intake import observe_records
from streams.router import Router
from streams.stores import RedisSeenStore, seen_store

LOOK_BACK_MS = 10_000
"""A router reads the heartbeats of the last 10 s before it is ready: three missed beats make a worker
gone."""


def add_router(process: Process) -> Registry:
    """Add the role to `process`; the registry that it follows.

    Raises:
        UsageError: the rules name a decomposer, predictor or detector that does not load.
    """
    registry = Registry()
    seen = seen_store(process.settings.redis)
    planner, cache = planner_of(process.rules), cache_for(process)
    budget, cancelled = budget_for(process), follow_cancellations(process)
    router = Router(
        planner,
        registry,
        process.clock,
        seen=seen,
        budget=budget,
        cache=cache,
        cancelled=cancelled,
        trace_sample=process.settings.trace_sample,
        tracer=tracer_for(process),
        objects=objects_for(process),
    )
    process.add_inlet(router, [REQUESTS], "router")

    def prepare(rules: Rules) -> Callable[[], None]:
        other = planner_of(rules)
        return lambda: router.adopt(other)

    process.on_rules.append(prepare)

    def take(record: Record) -> None:
        observe_records(registry, [record])

    def reached(ago_ms: float) -> None:
        registry.reached(int(process.clock.now() - ago_ms))

    since = process.clock.now() - LOOK_BACK_MS
    follower = Follower(process, CAPABILITIES, since, take, reached)
    process.before.append(follower.start)
    process.host.add_task("breakers as metrics", router.watch)
    if cache is not None:
        process.host.add_task("answers of equal requests", router.follow)
    if isinstance(seen, RedisSeenStore):
        process.before.append(seen.look)
    process.after += [follower.stop, router.close, seen.close]
    return registry
