"""What the aiokafka adapters share: the meaning of its errors, and a limit on every wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar

from aiokafka import errors as kafka

from streams.delivery.errors import Unavailable

T = TypeVar("T")

Options = Mapping[str, Any]
"""Keyword arguments common to all aiokafka clients: addresses, TLS, SASL
(streams.settings.client_options)."""

NOT_OWNER = (
    kafka.CommitFailedError,
    kafka.IllegalGenerationError,
    kafka.IllegalStateError,
    kafka.UnknownMemberIdError,
    kafka.RebalanceInProgressError,
)


async def within(wait_s: float, work: Awaitable[T], what: str) -> T:
    """The result of `work`.

    Raises:
        Unavailable: after `wait_s`, or where no broker can be reached. aiokafka retries without limit by
        itself.
    """
    try:
        # Not wait_for: before Python 3.12 it swallows a cancellation that comes together with the result.
        async with asyncio.timeout(wait_s):
            return await work
    except TimeoutError as error:
        raise Unavailable(f"{what}: no answer from Kafka within {wait_s:g} s") from error
    except kafka.KafkaError as error:
        if isinstance(error, NOT_OWNER) or not (error.retriable or isinstance(error, _AWAY)):
            raise
        raise Unavailable(f"{what}: {error or type(error).__name__}") from error


_AWAY = (kafka.KafkaConnectionError, kafka.NodeNotReadyError, kafka.KafkaTimeoutError)
