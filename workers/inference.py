"""One batch through a backend, so that a bad row fails alone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from schemas.errors import ErrorCode
from schemas.messages import Failure
from workers.backends import Answer, Backend, Row
from workers.errors import BadOutput, failure_of, where

log = logging.getLogger(__name__)

BACKEND_FAULTS: frozenset[ErrorCode] = frozenset({"backend_error", "bad_output", "internal"})
"""Errors that speak against the backend; a caller's bad input does not."""


def infer(backend: Backend, rows: Sequence[Row], expired: Callable[[int], bool]) -> list[Answer]:
    """One answer a row, in order; never raises an Exception.

    Where the batch fails as a whole its rows are tried one by one; rows that `expired(index)` by then are
    left out, so that a backend that fails slowly does not hold the others up.
    """
    try:
        answers = backend.infer(rows)
        if len(answers) != len(rows):
            raise BadOutput(f"answered {len(answers)} of {len(rows)} rows")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a backend may raise anything
        name = backend.card.capability
        log.warning("%s failed on %d rows: %s at %s", name, len(rows), type(error).__name__, where(error))
        if len(rows) == 1:
            return [Answer(error=failure_of(error, name))]
        return [late() if expired(i) else infer(backend, [row], expired)[0] for i, row in enumerate(rows)]
    return answers


def late() -> Answer:
    """The answer to a row whose deadline has passed."""
    return Answer(
        error=Failure(code="deadline_exceeded", message="the deadline passed before the model could run")
    )
