"""Errors of the embedded broker."""


class EmbeddedKafkaError(Exception):
    """The embedded Kafka could not be prepared, started or stopped.

    The text says what failed, where, and how to mend it; after a failed start it ends with the last
    lines of the broker's log. `exit_code` is what a command ends with.
    """

    exit_code = 1


class UnusableSetting(EmbeddedKafkaError):
    """A value that is out of range, or a data folder that cannot be used."""

    exit_code = 2


class BrokerPortTaken(EmbeddedKafkaError):
    """A port that was asked for is in use."""

    exit_code = 2
