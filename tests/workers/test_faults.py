"""What the log says of a backend's faults: the place, once in a while, and never a payload."""

from __future__ import annotations

import logging

import pytest

from schemas.messages import Failure
from workers.errors import BadInput
from workers.faults import EVERY_S, MOST_KINDS, FaultLog, told

SECRET = "4111 1111 1111 1111"


def fail(kind: type[Exception] = RuntimeError) -> Exception:
    def deeper() -> None:
        raise kind(f"lost {SECRET}")

    try:
        deeper()
    except Exception as error:  # noqa: BLE001 - the caller looks at it
        return error
    raise AssertionError


def test_a_fault_is_logged_with_its_frames_and_without_its_message(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        FaultLog().raised(fail(), "t/raise")
    (line,) = caplog.records
    assert line.levelname == "WARNING"
    assert "t/raise failed on 1 rows: RuntimeError at" in line.getMessage()
    assert "test_faults.py:" in line.getMessage()
    assert "in deeper < " in line.getMessage()
    assert SECRET not in caplog.text


def test_at_debug_the_message_is_shown(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        FaultLog().raised(fail(), "t/raise")
    assert SECRET in caplog.text


def test_causes_are_named(caplog: pytest.LogCaptureFixture) -> None:
    error = fail()
    error.__cause__ = fail(KeyError)
    FaultLog().raised(error, "t/raise")
    assert "caused by KeyError at" in caplog.text


def test_a_kind_is_said_once_in_a_while_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    faults = FaultLog(lambda: now[0])
    for _ in range(5):
        faults.raised(fail(), "t/raise")
    assert len(caplog.records) == 1
    faults.raised(fail(), "t/other")
    faults.raised(fail(KeyError), "t/raise")
    assert len(caplog.records) == 3
    now[0] = EVERY_S
    faults.raised(fail(), "t/raise")
    assert "(4 more like it" in caplog.records[-1].getMessage()


def test_withheld_answers_that_differ_in_figures_alone_are_one_kind(caplog: pytest.LogCaptureFixture) -> None:
    faults = FaultLog()
    for size in (2_000_000, 3_000_000):
        faults.refused(Failure(code="too_large", message=f"t/big: takes {size} bytes"))
    assert len(caplog.records) == 1


def test_many_kinds_do_not_fill_the_memory() -> None:
    faults = FaultLog()
    for number in range(3 * MOST_KINDS):
        faults.refused(Failure(code="bad_output", message="x" * (number + 1)))
    assert len(faults._kinds) <= MOST_KINDS


def test_what_the_caller_is_told_in_full_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert told(BadInput("give a text"), "t/told").code == "bad_input"
    assert caplog.records == []
    assert "see the worker's log" in told(fail(ValueError), "t/told").message
    assert "ValueError at" in caplog.text
