"""Requests out, answers in, progress on the way: what the gateway and the client stand on."""

from edgeway.exchange.kafka import KafkaExchange
from edgeway.exchange.ports import Event, EventKind, Exchange, Health, Sent

__all__ = ["Event", "EventKind", "Exchange", "Health", "KafkaExchange", "Sent"]
