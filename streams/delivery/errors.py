"""Errors of delivery."""

from __future__ import annotations


class DeliveryError(Exception):
    """Base of this package's errors."""


class NotOwner(DeliveryError):
    """The group took the partitions away (or is about to): normal during a rebalance. Local state is
    dropped."""


class TwinTookOver(DeliveryError):
    """Another process runs under the same static slot. This one must end: each would throw the other out
    for ever."""


class Unavailable(DeliveryError):
    """Kafka did not answer in time. The outcome of what was sent is unknown."""


class Undeliverable(DeliveryError):
    """One record that will never be accepted: its topic is missing or forbidden, or it is too large. `code`
    is an ErrorCode."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Uncleared(DeliveryError):
    """A record for a `cloud.*` topic without a clearance for exactly its value: a bug of the agent. Nothing
    of its settlement is written, and the record that caused it fails."""


class Stuck(DeliveryError):
    """Work waits and nothing was finished for too long: the process must be replaced."""
