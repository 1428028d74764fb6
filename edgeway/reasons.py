"""Why Kafka cannot be reached: the client logs the reason, and raises without it."""

from __future__ import annotations

import logging


class Reasons(logging.Handler):
    """Keeps the lines of the client while Kafka is being reached, each once."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        if line not in self.lines:
            self.lines.append(line)


gathering: list[Reasons] = []


def heard(record: logging.LogRecord) -> None:
    """Let whoever is reaching Kafka know of a line that a filter keeps from the log."""
    if record.levelno >= logging.WARNING:
        for reasons in gathering:
            reasons.emit(record)
