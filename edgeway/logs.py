"""Logging of every command: readable on a terminal, JSON lines otherwise, never a secret."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import IO

from streams.settings import Secret, Settings

CHATTY = ("aiokafka", "faust", "mode")
_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class TextFormatter(logging.Formatter):
    """`12:00:00.123 INFO    edgeway.x  message`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03d %(levelname)-7s %(name)s  %(message)s", "%H:%M:%S")


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, what came as `extra`, error with its trace."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {key: value for key, value in vars(record).items() if key not in _PLAIN}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class Masked(logging.Formatter):
    """Another formatter, whose lines have every known secret replaced by `***`."""

    def __init__(self, inner: logging.Formatter, secrets: Sequence[Secret]) -> None:
        super().__init__()
        self._inner = inner
        self._texts = [secret.reveal() for secret in secrets]

    def format(self, record: logging.LogRecord) -> str:
        line = self._inner.format(record)
        for text in self._texts:
            line = line.replace(text, "***")
        return line


def _not_the_client(record: logging.LogRecord) -> bool:
    return not record.name.startswith("aiokafka")


class FirstStart(logging.Filter):
    """Hides what the Kafka client logs while a broker makes or loads the topic of the groups, as each first
    start of a cluster has it: for `PATIENCE_S` from the first such line, and no longer than until `over`."""

    PATIENCE_S = 20.0
    KINDS = re.compile(
        r"Group Coordinator Request failed: \[Error 15\]|Marking the coordinator dead \(node .*\)for group "
    )

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._until: float | None = None
        self.over = False

    def filter(self, record: logging.LogRecord) -> bool:
        if self.over or not record.name.startswith("aiokafka") or not self.KINDS.match(record.getMessage()):
            return True
        now = self._clock()
        if self._until is None:
            self._until = now + self.PATIENCE_S
        return now >= self._until


def started() -> None:
    """The process is ready: what the Kafka client says of coordinators from now on is shown."""
    for handler in logging.getLogger().handlers:
        for hides in handler.filters:
            if isinstance(hides, FirstStart):
                hides.over = True


class Sparing(logging.Filter):
    """Lets a line of a library through once in `EVERY_S`: without a broker its client says the same ten
    times a second."""

    EVERY_S = 10.0
    MOST = 500

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._last: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.name.startswith(CHATTY):
            return True
        line, now = (record.name, record.getMessage()), self._clock()
        if now - self._last.get(line, -self.EVERY_S) < self.EVERY_S:
            return False
        if len(self._last) >= self.MOST:
            self._last.clear()
        self._last[line] = now
        return True


def configure(settings: Settings, stream: IO[str] | None = None, *, quiet_client: bool = False) -> None:
    """Set up the root logger once per process.

    `quiet_client` hides what the Kafka client logs: commands that report its failures say them once.
    """
    stream = stream or sys.stderr
    text = settings.log_format == "text" or (settings.log_format == "auto" and stream.isatty())
    handler = logging.StreamHandler(stream)
    secrets = [secret for secret in (settings.sasl_password, settings.http_token) if secret]
    handler.setFormatter(Masked(TextFormatter() if text else JsonFormatter(), secrets))
    if quiet_client and settings.log_level != "debug":
        handler.addFilter(_not_the_client)
    if settings.log_level != "debug":
        handler.addFilter(FirstStart())
    handler.addFilter(Sparing())
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler], force=True)
    # These tell of every step they take.
    for chatty in (*CHATTY, "streams.app"):
        logging.getLogger(chatty).setLevel("DEBUG" if settings.log_level == "debug" else "WARNING")
    logging.captureWarnings(True)
