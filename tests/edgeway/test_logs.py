"""Logging: JSON lines away from a terminal, no secret in any line."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from edgeway import logs
from streams.settings import Secret, Settings


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _root_restored() -> Iterator[None]:
    root = logging.getLogger()
    before = root.level, root.handlers[:]
    yield
    root.setLevel(before[0])
    root.handlers[:] = before[1]
    logging.captureWarnings(False)
    logging.getLogger("aiokafka").setLevel(logging.NOTSET)


def test_json_lines_away_from_a_terminal() -> None:
    stream = io.StringIO()
    logs.configure(Settings(), stream)
    try:
        raise ValueError("why")
    except ValueError:
        logging.getLogger("edgeway.x").exception("done %d", 3, extra={"partition": 4})
    line = json.loads(stream.getvalue())
    assert (line["level"], line["logger"], line["message"], line["partition"]) == (
        "error",
        "edgeway.x",
        "done 3",
        4,
    )
    assert "ValueError: why" in line["error"]
    assert line["time"].endswith("+00:00")


def test_text_on_a_terminal_and_where_asked_for() -> None:
    for stream, settings in ((Terminal(), Settings()), (io.StringIO(), Settings(log_format="text"))):
        logs.configure(settings, stream)
        logging.getLogger("edgeway.x").warning("mind")
        assert "WARNING edgeway.x  mind" in stream.getvalue()
    stream = Terminal()
    logs.configure(Settings(log_format="json"), stream)
    logging.getLogger("edgeway.x").warning("mind")
    assert json.loads(stream.getvalue())["message"] == "mind"


def test_levels_and_the_quiet_client() -> None:
    stream = io.StringIO()
    logs.configure(Settings(log_level="warning"), stream, quiet_client=True)
    logging.getLogger("edgeway").info("hidden")
    logging.getLogger("aiokafka.client").error("hidden")
    assert stream.getvalue() == ""


@pytest.mark.parametrize("fmt", ["text", "json"])
def test_a_secret_is_masked_wherever_it_turns_up(fmt: str) -> None:
    stream = io.StringIO()
    logs.configure(Settings(sasl_password=Secret("hunter2"), log_format=fmt), stream)
    try:
        raise ValueError("login with hunter2 failed")
    except ValueError:
        logging.getLogger("x").exception("hunter2 %s", "hunter2")
    assert "hunter2" not in stream.getvalue()
    assert "***" in stream.getvalue()


def test_a_library_that_repeats_itself_is_heard_once_in_a_while() -> None:
    now = [0.0]
    sparing = logs.Sparing(lambda: now[0])

    def passes(name: str, text: str) -> bool:
        return bool(sparing.filter(logging.makeLogRecord({"name": name, "msg": text})))

    assert [passes("aiokafka.conn", "no broker"), passes("aiokafka.conn", "no broker")] == [True, False]
    assert passes("aiokafka.conn", "another thing")
    assert [passes("streams.delivery", "ours"), passes("streams.delivery", "ours")] == [True, True]
    now[0] = logs.Sparing.EVERY_S
    assert passes("aiokafka.conn", "no broker")


def _coordinator(text: str, name: str = "aiokafka.consumer.group_coordinator") -> logging.LogRecord:
    return logging.LogRecord(name, logging.ERROR, "", 0, text, None, None)


def test_the_lines_of_a_first_start_are_hidden_and_real_trouble_is_not() -> None:
    now = 0.0
    hides = logs.FirstStart(lambda: now)
    missing = _coordinator("Group Coordinator Request failed: [Error 15] CoordinatorNotAvailableError: x")
    dead = _coordinator("Marking the coordinator dead (node 1)for group edgeway.router.")
    refused = _coordinator("Group Coordinator Request failed: [Error 30] GroupAuthorizationFailedError")
    assert [hides.filter(record) for record in (missing, dead, refused)] == [False, False, True]
    assert hides.filter(_coordinator(missing.getMessage(), "edgeway.x"))
    now = logs.FirstStart.PATIENCE_S
    assert hides.filter(missing), "a cluster that never gets ready is real trouble"
    now = 0.0
    again = logs.FirstStart(lambda: now)
    again.over = True
    assert again.filter(dead)


def test_a_process_that_is_ready_shows_them() -> None:
    stream = io.StringIO()
    logs.configure(Settings(), stream)
    logger = logging.getLogger("aiokafka.consumer.group_coordinator")
    logger.warning("Marking the coordinator dead (node %s)for group %s.", 1, "g")
    assert stream.getvalue() == ""
    logs.started()
    # Another line: a client that another test made in this process spares the same one.
    logger.warning("Marking the coordinator dead (node %s)for group %s.", 2, "g")
    assert "coordinator dead" in stream.getvalue()
