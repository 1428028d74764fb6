"""One batch through a backend, so that a bad row fails alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from schemas.errors import ErrorCode
from schemas.messages import Failure
from workers.backends import Answer, Backend, Call, RemoteBackend, Row
from workers.errors import BadOutput, failure_of
from workers.faults import FAULTS, told

CANCELLED = Failure(code="cancelled", message="the caller cancelled the request before the model could run")
BACKEND_FAULTS: frozenset[ErrorCode] = frozenset({"backend_error", "bad_output", "internal"})
"""Errors that speak against the backend; a caller's bad input does not."""


def infer(
    backend: Backend,
    rows: Sequence[Row],
    expired: Callable[[int], bool],
    calls: Sequence[Call] | None = None,
    *,
    paid: bool = False,
) -> list[Answer]:
    """One answer a row, in order; raises nothing.

    Where the batch fails as a whole its rows are tried one by one; rows that `expired(index)` by then are
    left out, so that a backend that fails slowly does not hold the others up. `calls` are for a remote one.
    `paid` rows are tried again only where the backend refused its inputs: after any other failure nobody
    knows what they have cost already.
    """
    name = backend.card.capability
    try:
        answers = list(_ask(backend, rows, calls))
        if len(answers) != len(rows):
            raise BadOutput(f"answered {len(answers)} of {len(rows)} rows")
    except BaseException as error:  # noqa: BLE001 - a backend may raise anything: SystemExit, CancelledError
        # KeyboardInterrupt too: in a thread it comes from no keyboard, and it took the whole worker along.
        refused = failure_of(error, name).code == "bad_input"
        if len(rows) == 1 or (paid and not refused):
            return [Answer(error=told(error, name))] * len(rows)
        if not refused:
            FAULTS.raised(error, name, len(rows))
        return [
            late() if expired(i) else infer(backend, [row], expired, calls and [calls[i]], paid=paid)[0]
            for i, row in enumerate(rows)
        ]
    return [answer if _is_answer(answer) else Answer(error=told(_NONE, name)) for answer in answers]


def _ask(backend: Backend, rows: Sequence[Row], calls: Sequence[Call] | None) -> Sequence[Answer]:
    if calls is not None and isinstance(backend, RemoteBackend):
        return backend.infer_calls(rows, calls)
    return backend.infer(rows)


_NONE = BadOutput("gave something else than an Answer, or one whose error is no Failure")


def _is_answer(found: object) -> bool:
    return isinstance(found, Answer) and (found.error is None or isinstance(found.error, Failure))


def late() -> Answer:
    """The answer to a row whose deadline has passed."""
    return Answer(
        error=Failure(code="deadline_exceeded", message="the deadline passed before the model could run"),
        cost=0.0,
    )
