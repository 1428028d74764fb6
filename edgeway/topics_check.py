"""How topics should be against how they are: the pure part of `edgeway topics`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from schemas.topics import JOINS, RESULTS, TopicSpec

CONFIGS = (
    "retention.ms",
    "cleanup.policy",
    "max.message.bytes",
    "message.timestamp.type",
    "min.insync.replicas",
)
LEAST_RETENTION_MS = 3_600_000
"""A request may be open for 10 minutes, and its records must outlive it, a night's outage not counted."""


@dataclass(frozen=True, slots=True)
class Actual:
    """A topic as the broker describes it. `configs` holds the CONFIGS that could be read.

    `leaderless` counts partitions without a leader: just after they are made, or while brokers are down.
    """

    name: str
    partitions: int
    replication: int
    configs: Mapping[str, str]
    leaderless: int = 0


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with one topic and how to mend it.

    An `error` keeps the roles from working; a `warning` is a difference they can live with. `config` is the
    change that mends it, `grow` the number of partitions to grow to; both None where no command of ours can.
    """

    topic: str
    what: str
    mend: str
    severity: Literal["error", "warning"] = "error"
    config: tuple[str, str] | None = None
    grow: int | None = None

    def __str__(self) -> str:
        return f"{self.topic}: {self.what}; {self.mend}"


def wanted_configs(spec: TopicSpec) -> dict[str, str]:
    """The topic configuration with which a topic is made."""
    return {
        "retention.ms": str(spec.retention_ms),
        "cleanup.policy": spec.cleanup,
        "max.message.bytes": str(spec.max_message_bytes),
        "message.timestamp.type": spec.timestamp_type,
    }


def compare(
    specs: Iterable[TopicSpec], actual: Mapping[str, Actual], replication: int | None = None
) -> list[Problem]:
    """Every difference that matters. Without `replication` the number of replicas is not looked at."""
    found: list[Problem] = []
    for spec in specs:
        there = actual.get(spec.name)
        if there is None:
            found.append(Problem(spec.name, "is missing", "make it with `edgeway topics apply`"))
        else:
            found += _leaders(there)
            found += _partitions(spec, there)
            found += _replicas(there, replication)
            found += _configs(spec, there)
    return [*found, *_together(actual)]


def _leaders(there: Actual) -> Iterator[Problem]:
    if there.leaderless:
        what = f"has {there.leaderless} partitions without a leader now"
        yield Problem(there.name, what, "start the brokers that hold them", "warning")


def _partitions(spec: TopicSpec, there: Actual) -> Iterator[Problem]:
    if there.partitions < spec.partitions:
        yield Problem(
            spec.name,
            f"has {there.partitions} partitions, {spec.partitions} are wanted",
            "`--grow` adds them (stop the roles first: keys move)",
            "warning",
            grow=spec.partitions,
        )
    elif there.partitions > spec.partitions:
        what = f"has {there.partitions} partitions, {spec.partitions} are wanted"
        yield Problem(
            spec.name, what, f"give --partitions {there.partitions}, none can be removed", "warning"
        )


def _replicas(there: Actual, replication: int | None) -> Iterator[Problem]:
    if replication is not None and there.replication < replication:
        what = f"has {there.replication} replicas, {replication} are wanted"
        yield Problem(there.name, what, "reassign it with kafka-reassign-partitions", "warning")
    least = _number(there, "min.insync.replicas")
    if least is not None and least > there.replication:
        what = f"has {there.replication} replicas, but each write waits for {least}"
        yield Problem(there.name, what, "lower min.insync.replicas", config=("min.insync.replicas", "1"))


def _configs(spec: TopicSpec, there: Actual) -> Iterator[Problem]:
    for key, wanted in wanted_configs(spec).items():
        has = there.configs.get(key)
        if has is None or has == wanted:
            continue
        severity = _severity(spec, there, key, has)
        if severity is not None:
            yield Problem(
                spec.name, f"{key} is {has}, {wanted} is wanted", "`--fix` sets it", severity, (key, wanted)
            )


def _severity(spec: TopicSpec, there: Actual, key: str, has: str) -> Literal["error", "warning"] | None:
    number = _number(there, key)
    if key == "max.message.bytes" and number is not None:
        return "error" if number < spec.max_message_bytes else None
    if key == "retention.ms" and number is not None:
        least = min(spec.retention_ms, LEAST_RETENTION_MS)
        return "error" if 0 <= number < least else "warning"
    # Compaction drops all but the last record of a key, and plans and partials share one.
    # CreateTime takes deadlines from the producer's clock.
    return "error"


def _together(actual: Mapping[str, Actual]) -> Iterator[Problem]:
    joins, results = actual.get(JOINS), actual.get(RESULTS)
    if joins is not None and results is not None and joins.partitions != results.partitions:
        few, many = sorted((joins, results), key=lambda topic: topic.partitions)
        yield Problem(
            few.name,
            f"has {few.partitions} partitions and {many.name} {many.partitions}; they must be equal",
            f"stop the roles and run `edgeway topics apply --grow --partitions {many.partitions}`",
            grow=many.partitions,
        )


def _number(there: Actual, key: str) -> int | None:
    text = there.configs.get(key, "")
    return int(text) if text.lstrip("-").isdigit() else None
