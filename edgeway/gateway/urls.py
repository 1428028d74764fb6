"""Inputs that name what is to be fetched: refused here where no worker would fetch them."""

from __future__ import annotations

from typing import Any

import httpx

from edgeway.gateway.problems import FieldRefused
from workers.library.fetch import Allowed, is_public

SUFFIX = "_url"
MAX_URL = 8192
MOST_URLS = 256
MOST_CHARACTERS = 8 * MAX_URL
"""Of all URLs of a request together. Reading one takes up to some ms, while nobody else is answered."""
_DATA = "data:"
_PORTS = {"http": 80, "https": 443}


def check_urls(inputs: dict[str, Any], allowed: Allowed) -> None:
    """Look at every input whose name ends in `_url`. What its host's name leads to is looked at by the worker
    that fetches it, at the moment it does.

    Raises:
        FieldRefused: it is neither a data URL nor one of an allowed host, or there are too many.
    """
    urls = characters = 0
    for name, value in inputs.items():
        if name.endswith(SUFFIX):
            for each in value if isinstance(value, list) else (value,):
                if isinstance(each, str) and not each.startswith(_DATA):
                    urls, characters = urls + 1, characters + min(len(each), MAX_URL)
                if urls > MOST_URLS or characters > MOST_CHARACTERS:
                    many = f"a request has at most {MOST_URLS} URLs of {MOST_CHARACTERS} characters together"
                    raise FieldRefused(name, many)
                why = _wrong(each, allowed)
                if why is not None:
                    raise FieldRefused(name, why)


def _wrong(value: Any, allowed: Allowed) -> str | None:
    """What keeps `value` from being fetched; it quotes nothing of it."""
    if not isinstance(value, str):
        return "a URL is a text"
    if value.startswith(_DATA):
        return None if "," in value else "a data URL has a comma before its data"
    if len(value) > MAX_URL:
        return f"a URL has at most {MAX_URL} characters"
    try:
        url = httpx.URL(value)
        scheme, host, port = url.scheme, url.host.lower().rstrip("."), url.port
    except (httpx.InvalidURL, ValueError):
        return "it is no URL"
    if scheme not in _PORTS or not host:
        return "it is no URL that begins with http://, https:// or data:"
    if url.userinfo:
        return "a URL holds no user name and no password"
    port = port or _PORTS[scheme]
    if not allowed.lists(host, port, scheme):
        return "its host is not listed under `hosts` in the rules"
    if _is_private(host) and not allowed.names_address(host, port, scheme):
        return "its host has a private address"
    return None


def _is_private(host: str) -> bool:
    try:
        return not is_public(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
