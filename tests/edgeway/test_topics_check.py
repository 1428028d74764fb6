"""Topics as they should be against topics as they are."""

from __future__ import annotations

import dataclasses

import pytest

from edgeway.topics_check import Actual, Problem, compare, wanted_configs
from schemas.topics import TopicSpec

SPEC = TopicSpec("joins", 6, retention_ms=7 * 86_400_000, cleanup="delete", max_message_bytes=2**21)
GOOD = Actual("joins", 6, 3, wanted_configs(SPEC) | {"min.insync.replicas": "2"})


def check(actual: Actual | None, replication: int | None = None) -> list[Problem]:
    return compare([SPEC], {actual.name: actual} if actual else {}, replication)


def changed(**configs: str) -> Actual:
    return dataclasses.replace(
        GOOD, configs={**GOOD.configs, **{k.replace("_", "."): v for k, v in configs.items()}}
    )


def test_a_topic_as_it_should_be_has_no_problem() -> None:
    assert check(GOOD, 3) == []


def test_a_missing_topic() -> None:
    (problem,) = check(None)
    assert problem.severity == "error"
    assert str(problem) == "joins: is missing; make it with `edgeway topics apply`"


@pytest.mark.parametrize(
    ("actual", "severity", "words"),
    [
        (changed(message_timestamp_type="CreateTime"), "error", "message.timestamp.type is CreateTime"),
        (changed(cleanup_policy="compact"), "error", "cleanup.policy is compact"),
        (changed(max_message_bytes="1048588"), "error", "max.message.bytes is 1048588"),
        (changed(retention_ms="60000"), "error", "retention.ms is 60000"),
        (changed(retention_ms="86400000"), "warning", "retention.ms is 86400000"),
        (changed(retention_ms="-1"), "warning", "retention.ms is -1"),
        (changed(min_insync_replicas="4"), "error", "each write waits for 4"),
        (dataclasses.replace(GOOD, partitions=3), "warning", "has 3 partitions, 6 are wanted"),
        (dataclasses.replace(GOOD, partitions=9), "warning", "has 9 partitions, 6 are wanted"),
        (dataclasses.replace(GOOD, leaderless=2), "warning", "2 partitions without a leader"),
        (dataclasses.replace(GOOD, replication=2), "warning", "has 2 replicas, 3 are wanted"),
    ],
)
def test_differences(actual: Actual, severity: str, words: str) -> None:
    (problem,) = check(actual, 3)
    assert problem.severity == severity
    assert words in problem.what
    assert problem.mend


def test_a_larger_message_limit_is_no_difference() -> None:
    assert check(changed(max_message_bytes="10000000")) == []


def test_configs_that_may_not_be_read_are_not_judged() -> None:
    assert check(dataclasses.replace(GOOD, configs={})) == []


def test_short_retention_is_right_where_it_is_wanted() -> None:
    spec = TopicSpec("capabilities", 1, retention_ms=600_000)
    assert compare([spec], {"capabilities": Actual("capabilities", 1, 1, wanted_configs(spec))}) == []


def test_joins_and_results_must_agree() -> None:
    results = dataclasses.replace(GOOD, name="results", partitions=8)
    problems = compare([SPEC], {"joins": GOOD, "results": results})
    assert [(p.topic, p.severity, p.grow) for p in problems] == [("joins", "error", 8)]
