"""The table of statuses: whole, and the same as at a worker's own door, but for what differs on purpose."""

from __future__ import annotations

from edgeway.gateway.problems import STATUSES
from schemas.errors import ERROR_CODES
from schemas.messages import Failure, Partial
from workers.http.problems import Refused, of_partial

HERE_ALONE = {
    "cancelled": "a call of a worker cannot be cancelled",
    "backend_error": "behind a gateway the model is another's",
    "bad_output": "behind a gateway the model is another's",
    "no_placement": "a worker places nothing",
    "unanswered": "a worker answers or is gone",
    "unknown_task": "a worker knows no tasks",
    "overloaded": "a worker's queue is the caller's pace (429), a gateway's room is not (503)",
}


def test_every_code_has_a_status() -> None:
    assert set(STATUSES) == set(ERROR_CODES)


def test_refusals_have_the_status_that_a_worker_gives() -> None:
    other = {code for code, (status, _) in STATUSES.items() if Refused(code, "").status != status}
    assert other == set(HERE_ALONE)


def test_failures_that_are_nobodys_fault_but_ours_are_500_at_both() -> None:
    for code, (status, _) in STATUSES.items():
        failed = Partial(subtask="r/s/local/0", deadline=1, error=Failure(code=code, message=""))
        if status == 500:
            assert of_partial(failed, "k", "local/a/b").status == 500
