"""The aggregator role: plans and partials in, one result for each request out."""

from __future__ import annotations

import dataclasses

from edgeway.roles.process import Process
from schemas.topics import JOINS
from streams import metrics
from streams.aggregator import Aggregator, Counts, Limits
from streams.delivery.drivers.aiokafka_reader import AiokafkaReader
from streams.merge.registry import installed


def add_aggregator(process: Process) -> None:
    """Add the role to `process`."""
    have = process.settings
    counts = Counts()
    aggregator = Aggregator(
        AiokafkaReader(process.options),
        process.clock,
        strategies=installed(),
        replies=frozenset(process.rules.reply_topics),
        limits=Limits(
            joins=max(1, have.open_joins // have.partitions), bytes=max(1, have.open_bytes // have.partitions)
        ),
        counts=counts,
    )
    # Never paused: the records that close joins stand behind those that open them.
    inlet = process.add_inlet(aggregator, [JOINS], "aggregator", pausing=False)
    process.add_timer(inlet, aggregator.tick)
    process.after.append(aggregator.close)
    metrics.count_from("edgeway_join_events", "What happened in joins", lambda: dataclasses.asdict(counts))
    metrics.OPEN_JOINS.set_function(lambda: aggregator.open_joins)
