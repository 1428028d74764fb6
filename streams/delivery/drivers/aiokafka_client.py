"""What the aiokafka adapters share: the meaning of its errors, and a limit on every wait."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from aiokafka import errors as kafka

from streams.delivery.drivers.aiokafka_resets import mend
from streams.delivery.errors import Unavailable

T = TypeVar("T")
log = logging.getLogger(__name__)

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
_AWAY = (
    kafka.KafkaConnectionError,
    kafka.NodeNotReadyError,
    kafka.KafkaTimeoutError,
    kafka.UnknownError,
    ConnectionError,
    TimeoutError,
    socket.gaierror,
)
_UNREACHABLE = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN)

# Every adapter imports this module before it makes a client.
mend()


def is_away(error: BaseException) -> bool:
    """Whether `error`, out of an aiokafka client, says that brokers are away or change their roles; asking
    again later is then right. False for what no later try mends, refused rights among it, and for bugs."""
    if isinstance(error, NOT_OWNER):
        return False
    if isinstance(error, _AWAY):
        return True
    if isinstance(error, kafka.KafkaError):
        # With no class of its own: an answer of a coordinator that aiokafka does not expect, such as
        # COORDINATOR_LOAD_IN_PROGRESS to a SyncGroup while another broker takes a group over.
        return bool(error.retriable) or type(error) is kafka.KafkaError
    if isinstance(error, OSError):
        return error.errno in _UNREACHABLE
    # uvloop's word for a transport that is closed already.
    return isinstance(error, RuntimeError) and "handler is closed" in str(error)


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
    except Exception as error:
        if not is_away(error):
            raise
        raise Unavailable(f"{what}: {said(error)}") from error


async def stopped(stop: Callable[[], Awaitable[Any]], what: str, wait_s: float) -> None:
    """Await `stop()`, at most `wait_s`: a client can hang in it when all brokers are away. What Kafka raises
    then is logged only: the work is done."""
    try:
        async with asyncio.timeout(wait_s):
            await stop()
    except TimeoutError:
        log.warning("%s did not stop within %g s and is left", what, wait_s)
    except asyncio.CancelledError:
        # It cancels tasks of its own and lets that out, which looks as if we were cancelled.
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        log.warning("%s did not stop in order and is left", what)
    except Exception as error:
        # Also the cancellation of the timeout, turned into an error of its own.
        if not (isinstance(error, kafka.KafkaError) or is_away(error)):
            raise
        log.warning("%s did not stop in order and is left: %s", what, said(error))


def ended(consumer: Any) -> BaseException | None:
    """What ended a started consumer for good; None while it lives.

    aiokafka does not tell: without its fetcher every poll is empty, and without its synchronizer of metadata
    it waits for ever for the next leader of a partition.
    """
    if consumer._closed:
        return None
    fetcher = consumer._fetcher
    for task in (consumer._client._sync_task, None if fetcher is None else fetcher.error_future):
        if task is not None and task.done():
            error: BaseException | None = None if task.cancelled() else task.exception()
            return error or kafka.KafkaError("a task of the client ended")
    return None


def said(error: BaseException) -> str:
    """What an error says, or its name: aiokafka raises many without a word."""
    return str(error) or type(error).__name__
