"""Where objects lie: `BASE/TENANT/YYYYMMDD/RANDOM`, and which claims lead there. Pure.

A dataref is text from outside. It must begin with the store's own base and the prefix of the tenant that
asks, and what follows may hold nothing that a file system, an object store or a URL takes for more than a
name.
"""

from __future__ import annotations

import re
import time

from schemas.bounds import TENANT
from streams.claims.errors import ClaimError, ObjectForbidden

NO_TENANT = "_"
MAX_DATAREF = 2048
_TENANT = re.compile(TENANT)
_SEGMENT = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9._=-]{0,199}")
_TOKEN = re.compile(r"[A-Za-z0-9]{16,64}")
_URL = re.compile(r"[a-z][a-z0-9+]*://[^\s?#*\[\]{}\\:%]*(?::\d{1,5})?[^\s?#*\[\]{}\\:%]*")
_CREDENTIALS = re.compile(r"^([a-z][a-z0-9+]*://)[^/@]*@")


def base_of(url: str) -> str:
    """The base that the datarefs of the store at `url` begin with: the URL without credentials and closing
    slashes.

    Raises:
        ClaimError: a URL that names no folder or prefix of one store.
    """
    base = _CREDENTIALS.sub(r"\1", url).rstrip("/")
    scheme, _, place = base.partition("://")
    segments = place.split("/")
    if not _URL.fullmatch(base) or not place or any(part in (".", "..") for part in segments):
        raise ClaimError(
            "this is no URL of an object store: give for example s3://BUCKET/PREFIX, file:///FOLDER or "
            f"memory://NAME, without ? # * % and not {scheme or 'nothing'!r} alone"
        )
    return base


def prefix_of(tenant: str | None) -> str:
    """The folder of a tenant; no two have the same, and none that of requests without one.

    Raises:
        ObjectForbidden: no name of a tenant.
    """
    if tenant is None:
        return NO_TENANT
    if not _TENANT.fullmatch(tenant):
        raise ObjectForbidden("an object of what is no tenant's name")
    # A tenant may be called `..` or `_`; none has a `=` in its name.
    return f"={ord(tenant[0]):02X}{tenant[1:]}" if tenant[0] in "._" else tenant


def object_name(tenant: str | None, at_s: float, token: str) -> str:
    """The name of a new object below the base; `token` is random, `at_s` seconds since the epoch."""
    if not _TOKEN.fullmatch(token):
        raise ValueError("a token is 16 to 64 letters and digits")
    return f"{prefix_of(tenant)}/{time.strftime('%Y%m%d', time.gmtime(at_s))}/{token}"


def name_in(base: str, dataref: str, tenant: str | None) -> str:
    """The name below `base` that a dataref of `tenant` leads to.

    Raises:
        ObjectForbidden: it leads elsewhere.
    """
    if not is_below(base, dataref):
        raise ObjectForbidden("the claim is not of this object store; write the object below its base URL")
    name = dataref[len(base) + 1 :]
    if len(dataref) > MAX_DATAREF or not all(map(_SEGMENT.fullmatch, name.split("/"))):
        raise ObjectForbidden("the claim's dataref holds what is no name; use letters, digits and . _ = -")
    if not name.startswith(f"{prefix_of(tenant)}/"):
        raise ObjectForbidden("the claim is not of the tenant that asks; each has a folder of its own")
    return name


def is_below(base: str, dataref: str) -> bool:
    """Whether a dataref begins as those of the store at `base` do."""
    return dataref.startswith(f"{base}/")


def overlap(one: str, other: str) -> bool:
    """Whether one of two bases lies in the other."""
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")
