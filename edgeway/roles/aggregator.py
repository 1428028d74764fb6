"""The aggregator role: plans and partials in, one result for each request out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from edgeway.errors import UsageError
from edgeway.roles.budgets import budget_for
from edgeway.roles.caches import cache_for
from edgeway.roles.cancellations import follow_cancellations
from edgeway.roles.objects import objects_for
from edgeway.roles.process import Process
from edgeway.roles.tracing import tracer_for
from schemas.rules import Rules
from schemas.topics import JOINS
from streams import metrics
from streams.aggregator import Aggregator, Counts, Errands, Limits
from streams.delivery.drivers.aiokafka_reader import AiokafkaReader
from streams.merge import MergeError, Strategy, installed
from streams.privacy.examiner import UnknownDetector, examiner_of

JOIN_EVENTS = "edgeway_join_events"


def add_aggregator(process: Process) -> None:
    """Add the role to `process`. It follows the rules: merges, reply topics, how long answers are kept.

    Raises:
        UsageError: the rules name a detector that is not there, or merges that cannot be used.
    """
    have = process.settings
    counts = Counts()
    strategies = dict(strategies_of(process.rules))
    errands = Errands(process.clock, cache_for(process), budget_for(process))
    cancelled = follow_cancellations(process, lambda key, _: aggregator.cancel(key, process.clock.now()))
    aggregator = Aggregator(
        AiokafkaReader(process.options),
        process.clock,
        strategies=strategies,
        limits=Limits(
            joins=max(1, have.open_joins // have.partitions), bytes=max(1, have.open_bytes // have.partitions)
        ),
        counts=counts,
        errands=errands,
        cancelled=cancelled,
        tracer=tracer_for(process),
        objects=objects_for(process),
    )

    def prepare(rules: Rules) -> Callable[[], None]:
        require_detectors(rules)
        merges = strategies_of(rules)

        def adopt() -> None:
            # The tables of all partitions hold this one map.
            strategies.clear()
            strategies.update(merges)
            aggregator.replies = frozenset(rules.reply_topics)
            errands.keep_s, errands.stale_s = rules.cache_s, longest_stale_s(rules)

        return adopt

    prepare(process.rules)()
    process.on_rules.append(prepare)
    # Never paused: the records that close joins stand behind those that open them.
    inlet = process.add_inlet(aggregator, [JOINS], "aggregator", pausing=False)
    process.add_timer(inlet, aggregator.tick)
    process.after.append(aggregator.close)
    metrics.count_from(JOIN_EVENTS, "What happened in joins", lambda: dataclasses.asdict(counts))
    metrics.OPEN_JOINS.set_function(lambda: aggregator.open_joins)
    metrics.OLDEST_JOIN_S.set_function(lambda: aggregator.oldest(process.clock.now()) / 1000.0)


def strategies_of(rules: Rules) -> Mapping[str, Strategy]:
    """The merge strategies there are under `rules`.

    Raises:
        UsageError: a module of them cannot be used.
    """
    try:
        return installed(rules.merges)
    except MergeError as error:
        raise UsageError(f"rules: {error}") from error


def longest_stale_s(rules: Rules) -> int:
    """How long a whole answer is kept to stand in, in seconds: for the task that wants it longest."""
    return max(rules.stale_s, *(task.stale_s or 0 for task in rules.tasks.values()), 0)


def require_detectors(rules: Rules) -> None:
    """Load the detectors now: the first examination must not wait for them, nor fail by them.

    Raises:
        UsageError: one is not there.
    """
    try:
        examiner_of(rules.privacy)
        for task in rules.tasks.values():
            examiner_of(task.examination(rules.privacy))
    except UnknownDetector as error:
        raise UsageError(f"rules: detectors: {error}") from error
