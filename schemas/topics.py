"""The topics: their names, who reads them, how they are made, and the partition of a key."""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from schemas.errors import UnknownTopic
from schemas.messages import Side

if TYPE_CHECKING:
    from schemas.rules_structs import Rules

REQUESTS = "requests"
JOINS = "joins"
RESULTS = "results"
DEAD_LETTERS = "dead-letters"
CAPABILITIES = "capabilities"
FEEDBACK = "feedback"
CANCELLATIONS = "cancellations"

DEFAULT_PARTITIONS = 6
MAX_TOPIC_BYTES = 249
"""Kafka's own limit on a topic's name."""

_DAY_MS = 86_400_000
_MIB = 2**20
_SIDES = get_args(Side)
_CAPABILITY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(/[A-Za-z0-9][A-Za-z0-9_-]*)*")
_REPLY = re.compile(r"results\.[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9][A-Za-z0-9_-]*)*")
_GROUPS = {REQUESTS: "router", JOINS: "aggregator"}
_ROLES = frozenset(("router", "aggregator"))


class TopicSpec(NamedTuple):
    """A topic as it must be."""

    name: str
    partitions: int
    retention_ms: int = 7 * _DAY_MS
    cleanup: Literal["delete", "compact"] = "delete"
    max_message_bytes: int = 2 * _MIB
    timestamp_type: Literal["LogAppendTime", "CreateTime"] = "LogAppendTime"


def capability_topic(side: Side, capability: str) -> str:
    """The topic of a capability: ("local", "nlp/summarize") -> "local.nlp.summarize".

    Raises:
        UnknownTopic: a side or name that makes none. A dot in a name would make two capabilities one topic.
    """
    if side not in _SIDES:
        raise UnknownTopic(f"{side!r} is no side; give local or cloud")
    if not _CAPABILITY.fullmatch(capability):
        raise UnknownTopic(
            f"{capability!r} is no capability; give words of letters, digits, - and _ joined by /,"
            " such as nlp/summarize"
        )
    topic = f"{side}.{capability.replace('/', '.')}"
    if len(topic) > MAX_TOPIC_BYTES:
        raise UnknownTopic(
            f"capability of {len(capability)} bytes makes a topic name above {MAX_TOPIC_BYTES} bytes"
        )
    return topic


def parse_capability_topic(topic: str) -> tuple[Side, str]:
    """The side and the capability of a topic; the inverse of `capability_topic`.

    Raises:
        UnknownTopic: it is none of a capability.
    """
    side, _, rest = topic.partition(".")
    capability = rest.replace(".", "/")
    if (
        side not in _SIDES
        or "/" in topic
        or len(topic) > MAX_TOPIC_BYTES
        or not _CAPABILITY.fullmatch(capability)
    ):
        raise UnknownTopic(f"{topic!r} is no topic of a capability; those are local.NAME and cloud.NAME")
    return ("local" if side == "local" else "cloud"), capability


def is_cloud(topic: str) -> bool:
    """Whether what is written to `topic` leaves the trusted side."""
    return topic.startswith("cloud.")


def reply_topic(name: str) -> str:
    """The topic of a `reply_to`, given as `results.NAME` or `NAME`.

    Raises:
        UnknownTopic: it makes no name of a topic below `results.`.
    """
    topic = name if name.startswith(f"{RESULTS}.") else f"{RESULTS}.{name}"
    if len(topic) > MAX_TOPIC_BYTES or not _REPLY.fullmatch(topic):
        raise UnknownTopic(
            f"{name!r} makes no reply topic; give results.NAME of letters, digits, -, _ and dots"
        )
    return topic


def group_of(role_or_topic: str) -> str:
    """The consumer group of a role (`router`, `aggregator`) or of whoever reads a topic.

    Raises:
        UnknownTopic: no group reads it.
    """
    role = _GROUPS.get(role_or_topic, role_or_topic)
    if role not in _ROLES:
        parse_capability_topic(role)
    return f"edgeway.{role}"


def partition_for(key: bytes, partitions: int) -> int:
    """The partition of a key: crc32 modulo partitions, as librdkafka's `consistent` partitioner, at C
    speed.
    """
    return zlib.crc32(key) % partitions


def core_topics(partitions: int = DEFAULT_PARTITIONS) -> tuple[TopicSpec, ...]:
    """The topics that every cluster has. `results` has as many partitions as `joins`: an answer keeps its
    number.
    """
    return (
        TopicSpec(REQUESTS, partitions),
        TopicSpec(JOINS, partitions),
        TopicSpec(RESULTS, partitions),
        TopicSpec(DEAD_LETTERS, 3, retention_ms=30 * _DAY_MS, max_message_bytes=3 * _MIB),
        TopicSpec(CAPABILITIES, 1, retention_ms=600_000),
        TopicSpec(FEEDBACK, 3, retention_ms=30 * _DAY_MS),
        TopicSpec(CANCELLATIONS, 1, retention_ms=1_200_000),
    )


def topics_for(rules: Rules, partitions: int = DEFAULT_PARTITIONS) -> tuple[TopicSpec, ...]:
    """Every topic that a cluster under `rules` needs: the core, reply topics, one for each side and
    capability.
    """
    replies = (TopicSpec(name, partitions) for name in rules.reply_topics)
    capabilities = (TopicSpec(capability_topic(*pair), partitions) for pair in rules.capabilities)
    return (*core_topics(partitions), *replies, *capabilities)
