"""Making, checking and mending the topics of a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, for_code

from edgeway import kafka
from edgeway.errors import TopicsRefused, TopicsWrong
from edgeway.topics_check import CONFIGS, Actual, Problem, compare, wanted_configs
from schemas.topics import TopicSpec
from streams.settings import Settings

SETTLE_S = 15.0
_SET_FOR_TOPIC = 1
_EXISTS = 36


@dataclass(frozen=True, slots=True)
class Report:
    """What `apply_topics` did, and what is still different afterwards."""

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    auto_create: bool | None = None

    @property
    def good(self) -> bool:
        """Whether the roles can work."""
        return not any(problem.severity == "error" for problem in self.problems)


async def verify_topics(settings: Settings, specs: Sequence[TopicSpec]) -> list[Problem]:
    """Every difference between `specs` and the cluster; a role must not start while one is an `error`.

    Raises:
        KafkaUnreachable: no broker answered within seconds.
    """
    async with kafka.admin(settings) as client:
        return compare(specs, await describe(client))


async def require_topics(settings: Settings, specs: Sequence[TopicSpec]) -> list[Problem]:
    """The warnings of `verify_topics`.

    Raises:
        KafkaUnreachable: no broker answered.
        TopicsWrong: there are errors; it names each.
    """
    problems = await verify_topics(settings, specs)
    errors = [str(problem) for problem in problems if problem.severity == "error"]
    if errors:
        raise TopicsWrong(errors, settings.bootstrap)
    return problems


async def check_topics(settings: Settings, specs: Sequence[TopicSpec]) -> Report:
    """The differences, replication among them, and whether the brokers create topics by themselves."""
    async with kafka.admin(settings) as client:
        problems = compare(specs, await describe(client), settings.replication)
        return Report(problems=tuple(problems), auto_create=await auto_create(client))


async def apply_topics(
    settings: Settings, specs: Sequence[TopicSpec], *, fix: bool = False, grow: bool = False
) -> Report:
    """Make the missing topics; with `fix` set the configuration that differs, with `grow` add partitions.

    Raises:
        KafkaUnreachable: no broker answered.
        TopicsRefused: the broker refused a change; the text says which and why.
    """
    async with kafka.admin(settings) as client:
        there = await describe(client)
        created = await _create(
            client, [spec for spec in specs if spec.name not in there], settings.replication
        )
        problems = compare(specs, there, settings.replication)
        changed = [
            *(await _configure(client, problems) if fix else ()),
            *(await _grow(client, problems) if grow else ()),
        ]
        left = await _settled(client, specs, settings.replication, problems, fix, grow)
        return Report(created, tuple(changed), tuple(left), await auto_create(client))


async def describe(client: AIOKafkaAdminClient) -> dict[str, Actual]:
    """All topics of the cluster but Kafka's own, with the CONFIGS of each that may be read."""
    topics = {t["topic"]: t["partitions"] for t in await client.describe_topics() if not t["is_internal"]}
    configs = await _read_configs(client, topics)
    return {
        name: Actual(
            name,
            len(partitions),
            min(len(partition["replicas"]) for partition in partitions),
            {key: value for key, (value, _) in configs.get(name, {}).items() if key in CONFIGS},
            sum(partition["leader"] < 0 for partition in partitions),
        )
        for name, partitions in topics.items()
        if partitions
    }


async def auto_create(client: AIOKafkaAdminClient) -> bool | None:
    """Whether some broker makes topics that are merely asked for; None where that may not be read."""
    cluster = await client.describe_cluster()
    key = "auto.create.topics.enable"
    nodes = [str(broker["node_id"]) for broker in cluster["brokers"]]
    asked = [ConfigResource(ConfigResourceType.BROKER, node, {key: None}) for node in nodes]
    answers = await client.describe_configs(asked)
    values = [entry[1] for answer in answers for resource in answer.resources for entry in resource[4]]
    return any(value == "true" for value in values) if values else None


async def _read_configs(
    client: AIOKafkaAdminClient, names: Iterable[str]
) -> dict[str, dict[str, tuple[str, int]]]:
    asked = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    if not asked:
        return {}
    found: dict[str, dict[str, tuple[str, int]]] = {}
    for answer in await client.describe_configs(asked):
        for code, _message, _kind, name, entries in answer.resources:
            if code == 0:
                found[name] = {entry[0]: (entry[1], entry[3]) for entry in entries}
    return found


async def _create(
    client: AIOKafkaAdminClient, specs: Sequence[TopicSpec], replication: int
) -> tuple[str, ...]:
    if not specs:
        return ()
    new = [
        NewTopic(spec.name, spec.partitions, replication, topic_configs=wanted_configs(spec))
        for spec in specs
    ]
    answer = await client.create_topics(new)
    refused = []
    for name, code, *message in answer.topic_errors:
        if code not in (0, _EXISTS):
            refused.append(f"topic {name} was not made: {_why(code, message)}")
    if refused:
        raise TopicsRefused("\n".join(refused))
    return tuple(name for name, code, *_ in answer.topic_errors if code == 0)


async def _configure(client: AIOKafkaAdminClient, problems: Iterable[Problem]) -> list[str]:
    changes: dict[str, dict[str, str]] = {}
    for problem in problems:
        if problem.config is not None:
            changes.setdefault(problem.topic, {}).update([problem.config])
    if not changes:
        return []
    # AlterConfigs sets the whole of a topic's own configuration: what it does not name goes back to default.
    own = await _read_configs(client, changes)
    resources = [
        ConfigResource(
            ConfigResourceType.TOPIC,
            name,
            {k: v for k, (v, source) in own.get(name, {}).items() if source == _SET_FOR_TOPIC} | change,
        )
        for name, change in changes.items()
    ]
    for answer in await client.alter_configs(resources):
        for code, message, _kind, name in answer.resources:
            if code:
                raise TopicsRefused(f"topic {name} could not be altered: {_why(code, [message])}")
    return [f"{name}: {key} = {value}" for name, change in changes.items() for key, value in change.items()]


async def _grow(client: AIOKafkaAdminClient, problems: Iterable[Problem]) -> list[str]:
    wanted: dict[str, int] = {}
    for problem in problems:
        if problem.grow is not None:
            wanted[problem.topic] = max(problem.grow, wanted.get(problem.topic, 0))
    if not wanted:
        return []
    try:
        await client.create_partitions({name: NewPartitions(count) for name, count in wanted.items()})
    except KafkaError as exc:
        raise TopicsRefused(f"partitions could not be added: {exc}") from exc
    return [f"{name}: {count} partitions" for name, count in wanted.items()]


async def _settled(
    client: AIOKafkaAdminClient,
    specs: Sequence[TopicSpec],
    replication: int,
    before: Sequence[Problem],
    fix: bool,
    grow: bool,
) -> list[Problem]:
    """The problems left once the brokers show what was done, which is a moment after they accepted it."""
    made = {problem.topic for problem in before if problem.what == "is missing"}
    mended = {
        (problem.topic, problem.what)
        for problem in before
        if (fix and problem.config is not None) or (grow and problem.grow is not None)
    }
    async with asyncio.timeout(SETTLE_S):
        while True:
            there = await describe(client)
            left = compare(specs, there, replication)
            led = all(name in there and not there[name].leaderless for name in made)
            if led and not any((problem.topic, problem.what) in mended for problem in left):
                return left
            await asyncio.sleep(0.1)


def _why(code: int, message: Sequence[str | None]) -> str:
    return f"{for_code(code).__name__}: {(message and message[0]) or for_code(code).description}"
