"""Requests out, answers in, progress on the way: what the gateway and the client stand on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from edgeway.exchange.ports import Event, EventKind, Exchange, Health, Sent

if TYPE_CHECKING:
    from edgeway.exchange.kafka import KafkaExchange

__all__ = ["Event", "EventKind", "Exchange", "Health", "KafkaExchange", "Sent"]


def __getattr__(name: str) -> Any:
    # Only when asked for: a client over HTTP needs the ports alone, and this one takes 0.4 s to load.
    if name == "KafkaExchange":
        from edgeway.exchange.kafka import KafkaExchange

        return KafkaExchange
    raise AttributeError(f"module 'edgeway.exchange' has no attribute {name!r}")
