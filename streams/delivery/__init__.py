"""Delivery: records in, records out, nothing lost, whatever dies."""

from streams.delivery.agent import Agent, Runner
from streams.delivery.clock import BrokerClock, Clock
from streams.delivery.driver import Reader, Sink, Source
from streams.delivery.errors import (
    DeliveryError,
    NotOwner,
    Stuck,
    TwinTookOver,
    Unavailable,
    Uncleared,
    Undeliverable,
)
from streams.delivery.inlet import Inlet
from streams.delivery.isolation import Isolation
from streams.delivery.lane import Lane
from streams.delivery.outlet import Outlet
from streams.delivery.records import Batch, Cleared, Committed, Header, Outgoing, Output, Place, Record
from streams.delivery.settings import InletSettings
from streams.delivery.window import Window

__all__ = [
    "Agent",
    "Batch",
    "BrokerClock",
    "Cleared",
    "Clock",
    "Committed",
    "DeliveryError",
    "Header",
    "Inlet",
    "InletSettings",
    "Isolation",
    "Lane",
    "NotOwner",
    "Outgoing",
    "Outlet",
    "Output",
    "Place",
    "Reader",
    "Record",
    "Runner",
    "Sink",
    "Source",
    "Stuck",
    "TwinTookOver",
    "Unavailable",
    "Uncleared",
    "Undeliverable",
    "Window",
]
