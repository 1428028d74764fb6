"""Errors of the embedded broker."""


class EmbeddedKafkaError(Exception):
    """The embedded Kafka could not be prepared, started or stopped.

    The text says what failed, where, and how to mend it; after a failed start it ends with the last
    lines of the broker's log.
    """
