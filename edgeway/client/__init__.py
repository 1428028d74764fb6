"""Requests from Python: over Kafka or through a gateway, with an event loop or without one."""

from edgeway.client.client import Client, HttpClient
from edgeway.client.errors import (
    AnswerError,
    BadInput,
    CapabilityFailed,
    ClientClosed,
    ClientError,
    DeadlineExceeded,
    GatewayRefused,
    IdConflict,
    InvalidRequest,
    NoPlacement,
    NotSent,
    OverBudget,
    Overloaded,
    RequestCancelled,
    RequestTimeout,
    ResultTooLarge,
    Unauthorized,
    UnknownRequest,
    UnknownTask,
)
from edgeway.client.pending import Pending
from edgeway.client.replies import result_of
from edgeway.client.retrying import Retries
from edgeway.client.sync import SyncClient, SyncHttpClient, SyncPending
from edgeway.client.typed import output_as, raise_for_error
from edgeway.exchange.ports import Event

__all__ = [
    "AnswerError",
    "BadInput",
    "CapabilityFailed",
    "Client",
    "ClientClosed",
    "ClientError",
    "DeadlineExceeded",
    "Event",
    "GatewayRefused",
    "HttpClient",
    "IdConflict",
    "InvalidRequest",
    "NoPlacement",
    "NotSent",
    "OverBudget",
    "Overloaded",
    "Pending",
    "RequestCancelled",
    "RequestTimeout",
    "ResultTooLarge",
    "Retries",
    "SyncClient",
    "SyncHttpClient",
    "SyncPending",
    "Unauthorized",
    "UnknownRequest",
    "UnknownTask",
    "output_as",
    "raise_for_error",
    "result_of",
]
