"""What a refusal means and costs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import ERROR_CODES
from workers.backends.remote_faults import Refusal, trouble_of

HEADERS = st.sampled_from([{}, {"retry-after": "3"}, {"retry-after": "soon"}])
SAID = st.none() | st.builds(Refusal, st.just("it says so"), st.just("backend_error"), st.booleans())


@given(st.integers(100, 599), HEADERS, SAID)
def test_every_status_is_success_or_trouble(
    status: int, headers: dict[str, str], said: Refusal | None
) -> None:
    trouble = trouble_of(status, headers, 0.0, said)
    if 200 <= status < 300:
        assert trouble is None
        return
    assert trouble is not None
    assert trouble.code in ERROR_CODES
    assert str(status) in str(trouble)
    assert trouble.free or status >= 500, "whoever answers 4xx has done nothing"
    if trouble.after_s is not None:
        assert status in (429, 503)
    if said is not None and said.final:
        assert not trouble.passing, "there is no use in asking again"
    answer = trouble.answer("a/b", "host")
    assert answer.cost == (0.0 if trouble.free else None)
    assert answer.error is not None
    assert answer.error.message.startswith("a/b: host answered")


@pytest.mark.parametrize(
    ("headers", "after_s"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "2"}, 2.0),
        ({"retry-after-ms": "9" * 400}, (10**12 - 1) / 1000),
        ({}, None),
    ],
)
def test_when_to_come_back(headers: dict[str, str], after_s: float | None) -> None:
    trouble = trouble_of(429, headers, 0.0)
    assert trouble is not None
    assert trouble.after_s == after_s


@pytest.mark.parametrize(
    ("status", "headers", "code", "free", "passing"),
    [
        (400, {}, "bad_input", True, False),
        (401, {}, "backend_error", True, False),
        (408, {}, "backend_error", True, True),
        (422, {"retry-after": "1"}, "bad_input", True, False),
        (429, {}, "backend_error", True, True),
        (429, {"retry-after": "1"}, "backend_error", True, True),
        (500, {}, "backend_error", False, False),
        (501, {}, "backend_error", False, False),
        (502, {}, "backend_error", False, True),
        (503, {}, "backend_error", False, True),
        (503, {"retry-after": "1"}, "backend_error", True, True),
        (503, {"retry-after": "soon"}, "backend_error", False, True),
        (504, {}, "backend_error", False, True),
    ],
)
def test_statuses(status: int, headers: dict[str, str], code: str, free: bool, passing: bool) -> None:
    trouble = trouble_of(status, headers, 0.0)
    assert trouble is not None
    assert (trouble.code, trouble.free, trouble.passing) == (code, free, passing)
