"""Real brokers for every integration test."""

from collections.abc import Iterator

import pytest

from edgeway.embedded import BrokerSettings, EmbeddedKafka
from tests.helpers.kafka import (
    _container_kafka,
    embedded_kafka,
    kafka,
    own_kafka,
    three_brokers,
)

__all__ = ["_container_kafka", "embedded_kafka", "kafka", "own_kafka", "three_brokers"]


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """Where a Kafka of this module's own listens."""
    cluster = EmbeddedKafka(BrokerSettings())
    cluster.start_sync()
    try:
        yield cluster.bootstrap
    finally:
        cluster.stop_sync()
