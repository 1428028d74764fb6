"""Which web pages may call a worker."""

from __future__ import annotations

import pytest

from workers.http.origins import is_loopback, may_call

OWN = [
    "127.0.0.1:8080",
    "localhost:8080",
    "[::1]:8080",
    "local-nlp",
    "edge.localhost:1",
    "nas.local",
    "h.internal",
]
REBOUND = ["evil.example:8080", "evil.example", "a.b.evil.com:8080", "evil.com."]


@pytest.mark.parametrize("host", OWN)
def test_a_doors_own_pages_may_call(host: str) -> None:
    assert may_call(f"http://{host}", host, here_alone=True)
    assert may_call(f"http://{host}".upper(), host, here_alone=True)
    for other in ("null", "", "http://", "http://evil.example", f"http://{host}.evil.example", f"{host}"):
        assert not may_call(other, host, here_alone=False)
    for none in ("http://[", "http://[x]", "http://a\u2100"):
        assert not may_call(none, host, here_alone=False)


@pytest.mark.parametrize("host", REBOUND)
def test_a_public_name_that_points_here_is_nobodys_own(host: str) -> None:
    assert not may_call(f"http://{host}", host, here_alone=True)
    assert may_call(f"https://{host}", host, here_alone=False), "there it may be the door's own name"


def test_what_can_be_reached_from_here_alone() -> None:
    assert all(map(is_loopback, ["127.0.0.1", "127.0.0.9", "::1", "localhost"]))
    assert not any(map(is_loopback, ["0.0.0.0", "::", "10.0.0.1", "example.com", ""]))
