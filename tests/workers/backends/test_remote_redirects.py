"""Redirects are followed to hosts that are allowed, and to no others."""

from __future__ import annotations

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.backends.remote_faults import Trouble
from workers.backends.remote_redirects import next_hop, same_origin

FROM = httpx.URL("https://api.example.com/v1/chat")
HOSTS = st.sampled_from(["a.example", "b.example", "a.example:8443", "127.0.0.1", "169.254.169.254", "[::1]"])


@given(
    st.sampled_from(["http", "https"]),
    st.sampled_from(["http", "https", "ftp", "file", "javascript"]),
    HOSTS,
    st.sets(HOSTS),
    st.sampled_from([301, 302, 303, 307, 308]),
)
def test_whatever_is_followed_was_allowed(
    scheme: str, to: str, host: str, allowed: set[str], status: int
) -> None:
    url = httpx.URL(f"{scheme}://api.example.com/v1")
    try:
        target = next_hop(url, status, f"{to}://{host}/elsewhere", allowed)
    except Trouble:
        return
    assert status in (307, 308)
    assert host in allowed
    assert to in ("http", "https")
    assert (scheme, to) != ("https", "http")
    assert target.path == "/elsewhere"


@pytest.mark.parametrize(
    ("location", "allowed", "target"),
    [
        ("https://b.example/x", ["b.example"], "https://b.example/x"),
        ("https://B.Example/x", ["b.EXAMPLE"], "https://b.example/x"),
        ("https://b.example:443/x", ["b.example"], "https://b.example/x"),
        ("https://b.example:8443/x", ["b.example:8443"], "https://b.example:8443/x"),
        ("/x", ["api.example.com"], "https://api.example.com/x"),
        ("https://b.example:8443/x", ["b.example"], None),
        ("https://b.example.evil.example/x", ["b.example"], None),
        ("https://b.example@evil.example/x", ["b.example"], None),
        ("https://user:4111@b.example/x", ["b.example"], None),
        ("//evil.example/x", ["b.example"], None),
        ("https://evil.example/b.example", ["b.example"], None),
        ("http://b.example/x", ["b.example"], None),
        ("https://b.example/x", [], None),
        ("", ["api.example.com"], None),
        (None, ["api.example.com"], None),
        ("https://[::1", ["b.example"], None),
        ("https://", ["b.example"], None),
    ],
)
def test_where_to(location: str | None, allowed: list[str], target: str | None) -> None:
    if target is not None:
        assert next_hop(FROM, 307, location, allowed) == httpx.URL(target)
        return
    with pytest.raises(Trouble, match="redirect") as caught:
        next_hop(FROM, 307, location, allowed)
    assert "4111" not in str(caught.value)
    assert caught.value.answer("a/b").cost == 0.0


def test_secrets_stay_with_their_origin() -> None:
    assert same_origin(FROM, httpx.URL("https://API.example.com:443/other"))
    for other in ("http://api.example.com/", "https://api.example.com:8443/", "https://example.com/"):
        assert not same_origin(FROM, httpx.URL(other))
