"""Which web pages may call."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def may_call(origin: str, host: str, *, here_alone: bool) -> bool:
    """Whether a page of `origin` may call what was asked as `host` (HOST or HOST:PORT, as the header says).

    Browsers ask any address for any page, so that only this door's own pages may. Where the door can be
    reached from this machine alone (`here_alone`), its own pages have no name of the public DNS: whoever owns
    such a name can have it point here, and then his pages and this door are of one origin.
    """
    try:
        parts = urlsplit(origin)
    except ValueError:  # brackets that hold no address, or characters that turn into others
        return False
    if parts.netloc.lower() != host.lower() or not parts.hostname:
        return False
    return not here_alone or not _is_public(parts.hostname)


def is_loopback(host: str) -> bool:
    """Whether what listens on `host` can be reached from this machine alone."""
    address = _address(host)
    return host.lower() == "localhost" if address is None else address.is_loopback


def _is_public(name: str) -> bool:
    if _address(name) is not None:
        return False
    labels = name.rstrip(".").split(".")
    return len(labels) > 1 and labels[-1] not in ("localhost", "local", "internal", "test")


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
