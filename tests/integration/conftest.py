"""Real brokers for every integration test."""

from tests.helpers.kafka import (
    _container_kafka,
    embedded_kafka,
    kafka,
    own_kafka,
    three_brokers,
)

__all__ = ["_container_kafka", "embedded_kafka", "kafka", "own_kafka", "three_brokers"]
