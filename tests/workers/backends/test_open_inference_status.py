"""What a gRPC status means, and what it costs."""

from __future__ import annotations

import math

import pytest

from workers.backends.open_inference_status import trouble_of

STATUSES = [
    # code, details, what the caller is told, free, passing
    ("INVALID_ARGUMENT", "unexpected shape", "bad_input", True, False),
    ("OUT_OF_RANGE", "", "bad_input", True, False),
    ("NOT_FOUND", "unknown model", "backend_error", True, False),
    ("UNIMPLEMENTED", "", "backend_error", True, False),
    ("UNAUTHENTICATED", "", "backend_error", True, False),
    ("PERMISSION_DENIED", "", "backend_error", True, False),
    ("RESOURCE_EXHAUSTED", "quota", "backend_error", True, True),
    ("RESOURCE_EXHAUSTED", "SERVER: Received message larger than max (6 vs. 4)", "bad_input", True, False),
    ("RESOURCE_EXHAUSTED", "CLIENT: Received message larger than max (6 vs. 4)", "bad_output", False, False),
    ("UNAVAILABLE", "failed to connect to all addresses; Connection refused", "backend_error", True, True),
    ("UNAVAILABLE", "DNS resolution failed for x", "backend_error", True, True),
    ("UNAVAILABLE", "Ssl handshake failed: CERTIFICATE_VERIFY_FAILED", "backend_error", True, False),
    ("UNAVAILABLE", "Ssl handshake failed: WRONG_VERSION_NUMBER", "backend_error", True, False),
    ("UNAVAILABLE", "Socket closed", "backend_error", False, True),
    ("UNAVAILABLE", "Exceeds maximum queue size", "backend_error", False, True),
    ("DEADLINE_EXCEEDED", "Deadline Exceeded", "backend_error", False, False),
    ("CANCELLED", "", "backend_error", False, True),
    ("INTERNAL", "boom", "backend_error", False, False),
    ("UNKNOWN", "boom", "backend_error", False, False),
    ("SOMETHING_NEW", "boom", "backend_error", False, False),
]


@pytest.mark.parametrize(("code", "details", "told", "free", "passing"), STATUSES)
def test_a_status(code: str, details: str, told: str, free: bool, passing: bool) -> None:
    trouble = trouble_of(code, details)
    assert (trouble.code, trouble.free, trouble.passing) == (told, free, passing)
    assert not details or details not in str(trouble), "details may quote inputs"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1500", 1.5),
        ("0", 0.0),
        (None, None),
        ("-1", None),
        ("soon", None),
        ("9" * 40, math.inf),
        ("²", None),
    ],
)
def test_the_wait_that_a_server_asks_for(text: str | None, seconds: float | None) -> None:
    for code in ("UNAVAILABLE", "RESOURCE_EXHAUSTED"):
        assert trouble_of(code, "busy", text).after_s == seconds
