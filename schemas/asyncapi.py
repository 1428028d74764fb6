"""The AsyncAPI 3 document: channels from the topics table, messages from the structs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from schemas import topics
from schemas.headers import CONTENT_TYPES, TYPE_PREFIX
from schemas.messages import VERSION, Message


class Channel(NamedTuple):
    """A topic, or a family of them: what it carries, who writes and who reads it."""

    address: str
    messages: tuple[str, ...]
    key: str
    writers: str
    readers: str
    parameters: tuple[str, ...] = ()


_DISPATCHERS = "router, aggregator"
CHANNELS: dict[str, Channel] = {
    "requests": Channel(topics.REQUESTS, ("Request",), "request id or any", "producers, gateway", "router"),
    "local": Channel(
        "local.{capability}", ("Subtask",), "subtask id", _DISPATCHERS, "workers", ("capability",)
    ),
    "cloud": Channel(
        "cloud.{capability}", ("Subtask",), "subtask id", _DISPATCHERS, "workers", ("capability",)
    ),
    "joins": Channel(
        topics.JOINS,
        ("Plan", "Partial", "Checkpoint"),
        "request id",
        "router, workers, aggregator",
        "aggregator",
    ),
    "results": Channel(topics.RESULTS, ("Result",), "request id", "aggregator", "callers, gateway"),
    "replies": Channel("results.{name}", ("Result",), "request id", "aggregator", "the caller", ("name",)),
    "dead-letters": Channel(topics.DEAD_LETTERS, ("DeadLetter",), "the original's", "all roles", "operators"),
    "capabilities": Channel(topics.CAPABILITIES, ("Heartbeat",), "worker id", "workers", "routers, console"),
    "feedback": Channel(topics.FEEDBACK, ("Feedback",), "request id", "callers", "backtest, calibration"),
    "cancellations": Channel(
        topics.CANCELLATIONS, ("Cancel",), "request id", "callers, gateway", "router, workers, aggregator"
    ),
}
_PARAMETERS = {
    "capability": "The capability with dots for slashes: nlp.summarize for nlp/summarize.",
    "name": "What `reply_to` of the request names; only reply topics of the rules file exist.",
}
_SPECS = {spec.name: spec for spec in topics.core_topics()}
_SENT = ("requests", "feedback", "cancellations")
_CALLER = ("requests", "results", "replies", "feedback", "cancellations")


def document(kinds: Sequence[type[Message]], schemas: dict[str, Any]) -> dict[str, Any]:
    """The document, as seen by a caller: it sends requests and feedback and receives results."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Edgeway",
            "version": f"{VERSION}.0.0",
            "description": "Hybrid inference over Kafka. Version of the messages: the `v` of each.",
            "license": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
        },
        "defaultContentType": CONTENT_TYPES["msgpack"],
        "channels": {name: _channel(name, channel) for name, channel in CHANNELS.items()},
        "operations": {
            f"{action}-{name}": _operation(action, name, CHANNELS[name])
            for name in _CALLER
            for action in (("send",) if name in _SENT else ("receive",))
        },
        "components": {
            "messages": {kind.__name__: _message(kind) for kind in kinds} | {"DeadLetter": _dead_letter()},
            "schemas": schemas | {"Headers": _headers()},
        },
    }


def _channel(name: str, channel: Channel) -> dict[str, Any]:
    spec = _SPECS.get(name, topics.TopicSpec(name, topics.DEFAULT_PARTITIONS))
    found: dict[str, Any] = {
        "address": channel.address,
        "description": f"Key: {channel.key}. Written by {channel.writers}; read by {channel.readers}.",
        "messages": {message: {"$ref": f"#/components/messages/{message}"} for message in channel.messages},
        "bindings": {
            "kafka": {
                "partitions": spec.partitions,
                "topicConfiguration": {
                    "cleanup.policy": [spec.cleanup],
                    "retention.ms": spec.retention_ms,
                    "max.message.bytes": spec.max_message_bytes,
                },
                "bindingVersion": "0.5.0",
            }
        },
    }
    if channel.parameters:
        found["parameters"] = {key: {"description": _PARAMETERS[key]} for key in channel.parameters}
    return found


def _operation(action: str, name: str, channel: Channel) -> dict[str, Any]:
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{name}"},
        "messages": [{"$ref": f"#/channels/{name}/messages/{message}"} for message in channel.messages],
    }


def _message(kind: type[Message]) -> dict[str, Any]:
    summary = " ".join((kind.__doc__ or "").partition("\n\n")[0].split())
    return {
        "name": str(kind.__struct_config__.tag),
        "title": kind.__name__,
        "summary": summary,
        "contentType": CONTENT_TYPES["msgpack"],
        "headers": {"$ref": "#/components/schemas/Headers"},
        "payload": {"$ref": f"#/components/schemas/{kind.__name__}"},
        "bindings": {"kafka": {"key": {"type": "string"}, "bindingVersion": "0.5.0"}},
    }


def _dead_letter() -> dict[str, Any]:
    return {
        "name": "dead_letter",
        "title": "DeadLetter",
        "summary": "A record that was given up, untouched; its headers say where it stood and why.",
        "contentType": "application/octet-stream",
        "payload": {"description": "the original bytes"},
    }


def _headers() -> dict[str, Any]:
    text = {"type": "string"}
    return {
        "type": "object",
        "description": "CloudEvents 1.0 (Kafka, binary mode) and W3C trace context; all may be absent.",
        "properties": {
            "content-type": {"type": "string", "enum": list(CONTENT_TYPES.values())},
            "ce_specversion": {"type": "string", "const": "1.0"},
            "ce_id": text,
            "ce_type": {"type": "string", "pattern": f"^{TYPE_PREFIX.replace('.', '[.]')}"},
            "ce_source": text,
            "ce_time": {"type": "string", "format": "date-time"},
            "traceparent": text,
            "tracestate": text,
        },
    }
