"""Which redirects of a POST are followed: pure."""

from __future__ import annotations

from collections.abc import Collection

import httpx

from workers.backends.remote_faults import Trouble

MOST_HOPS = 3
_KEEPING = frozenset({307, 308})
"""Redirects that keep the method (RFC 9110, section 15.4); the others would make a GET of the POST."""
_PORTS = {"http": 80, "https": 443}


def is_redirect(status: int) -> bool:
    """Whether the status sends elsewhere."""
    return status in (301, 302, 303, 307, 308)


def next_hop(url: httpx.URL, status: int, location: str | None, allowed: Collection[str]) -> httpx.URL:
    """Where a redirect of a POST to `url` leads.

    `allowed` are hosts, `HOST` for the usual port of the scheme or `HOST:PORT`, in any case of letters.

    Raises:
        Trouble: one that is not followed. It is free: nothing was carried out.
    """
    if not allowed:
        raise _no("a redirect, and none is followed; put the new address in its place", status)
    if status not in _KEEPING:
        raise _no("a redirect that would lose what was posted; put the new address in its place", status)
    try:
        target = url.join(location or "")
    except (httpx.InvalidURL, ValueError) as error:
        raise _no("a redirect to an address that cannot be read", status) from error
    if not location or target.scheme not in _PORTS or not target.host:
        raise _no("a redirect without an address of http or https", status)
    if url.scheme == "https" and target.scheme != "https":
        raise _no("a redirect from https to http, which is never followed", status)
    if target.userinfo and not same_origin(url, target):
        raise _no("a redirect to an address with a password, which is never followed", status)
    if _name(target) not in {_full(host, target.scheme) for host in allowed}:
        raise _no("a redirect to a host that is not among those allowed", status)
    return target


def same_origin(one: httpx.URL, other: httpx.URL) -> bool:
    """Whether what is secret for one may be sent to the other."""
    return (one.scheme, _name(one)) == (other.scheme, _name(other))


def _name(url: httpx.URL) -> str:
    host = f"[{url.host}]" if ":" in url.host else url.host
    return f"{host.lower()}:{url.port or _PORTS.get(url.scheme, 0)}"


def _full(host: str, scheme: str) -> str:
    _, colon, port = host.rpartition(":")
    has_port = bool(colon) and port.isdigit()
    return host.lower() if has_port else f"{host.lower()}:{_PORTS[scheme]}"


def _no(text: str, status: int) -> Trouble:
    return Trouble(f"answered {status}: {text}", free=True)
