"""What the Kafka client logs, spared for the program that a client runs in."""

from __future__ import annotations

import logging

from edgeway import reasons
from edgeway.logs import CHATTY, Sparing


class _Spared(Sparing):
    """The reason why Kafka cannot be reached stands in these lines alone, also in the second of a kind."""

    def filter(self, record: logging.LogRecord) -> bool:
        passes = super().filter(record)
        if not passes:
            reasons.heard(record)
        return passes


_SPARING = _Spared()


def spare_the_log() -> None:
    """Let each line of the Kafka client through once in ten seconds, as Edgeway's own processes do.

    While the brokers are away it says the same sixty times a second, and a program that has set up no logging
    gets all of it on its standard error. A filter of a logger counts for that logger alone, so each has it.
    """
    for name, logger in list(logging.root.manager.loggerDict.items()):
        is_chatty = name == CHATTY[0] or name.startswith(f"{CHATTY[0]}.")
        if is_chatty and isinstance(logger, logging.Logger) and _SPARING not in logger.filters:
            logger.addFilter(_SPARING)
