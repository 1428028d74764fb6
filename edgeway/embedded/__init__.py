"""A real Apache Kafka from its own jars: no Docker, no Maven, no system Java."""

from edgeway.embedded.errors import EmbeddedKafkaError
from edgeway.embedded.kafka import EmbeddedKafka
from edgeway.embedded.settings import BrokerSettings

__all__ = ["BrokerSettings", "EmbeddedKafka", "EmbeddedKafkaError"]
