"""The HTTP client of remote backends, and what it reads."""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Mapping
from functools import lru_cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, NamedTuple

import httpx
import msgspec

from workers.backends.remote_faults import Trouble
from workers.errors import LoadError

TOTAL_S = 60.0
"""The longest that a call may take, however far its deadline is."""
CONNECT_S = 2.0
IDLE_S = 3.0
"""How long a connection is kept unused: servers close theirs after 5 s and more, and a request that meets
the close is lost without need."""
CONNECTIONS = 64

_HEADERS = {"content-type": "application/json", "accept": "application/json", "accept-encoding": "identity"}

# At level info httpx writes whole URLs, with the keys that stand in their queries; at level debug httpcore
# writes the headers of answers.
logging.getLogger("httpx").setLevel(logging.WARNING)
logging.getLogger("httpcore").setLevel(logging.INFO)


class Limits(NamedTuple):
    """What a call may take: seconds in all and to connect, bytes there and back, attempts.

    `hosts` may be redirected to (HOST or HOST:PORT). `ca_file` holds the certificates that are trusted, in
    place of the system's. `idempotent`: the service answers an Idempotency-Key once, so that a call that was
    cut off may be made again though it is paid for.
    """

    timeout_s: float = TOTAL_S
    connect_s: float = CONNECT_S
    request_bytes: int = 8 * 1024 * 1024
    answer_bytes: int = 1024 * 1024
    attempts: int = 3
    hosts: tuple[str, ...] = ()
    ca_file: str | None = None
    idempotent: bool = False


USUAL = Limits()


class Reply(NamedTuple):
    """An answer of success: headers by lower-case name, and the body."""

    headers: Mapping[str, str]
    body: bytes


def client_of(name: str, limits: Limits) -> httpx.AsyncClient:
    """A pooled client that keeps no cookies.

    Raises:
        LoadError: a file of certificates that is not there.
    """
    return httpx.AsyncClient(
        verify=_trust(name, limits.ca_file),
        limits=httpx.Limits(max_connections=CONNECTIONS, keepalive_expiry=IDLE_S),
        # The whole call is timed, not each read: an endpoint that trickles would never time out.
        timeout=httpx.Timeout(None, connect=limits.connect_s),
        headers=_HEADERS,
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
    )


def url_of(capability: str, text: str) -> httpx.URL:
    """The URL of a service.

    Raises:
        LoadError: none of http or https; the message does not quote it.
    """
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, TypeError) as error:
        raise LoadError(f"{capability}: its URL cannot be read; write https://HOST/PATH") from error
    if url.scheme not in ("http", "https") or not url.host or (url.port or 1) > 65535:
        raise LoadError(f"{capability}: its URL is none of http or https; write https://HOST/PATH")
    return url


def json_of(body: bytes) -> Any:
    """The value in a body of JSON.

    Raises:
        Trouble: there is none.
    """
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Trouble("answered something else than JSON") from error


async def read(response: httpx.Response, most: int) -> bytes:
    """The body. Nothing is unpacked: a small body may hold a huge one."""
    if response.headers.get("content-encoding", "identity") != "identity":
        raise Trouble("answered compressed, which was not asked for")
    found = bytearray()
    async for chunk in response.aiter_raw():
        found += chunk
        if len(found) > most:
            raise Trouble(f"answered more than {most} bytes")
    return bytes(found)


def broken(error: httpx.HTTPError, connect_s: float, *, sent: bool) -> Trouble:
    """The trouble of a connection that failed."""
    if isinstance(error, httpx.ConnectTimeout):
        text = f"took no connection within {connect_s:.0f} s"
        return Trouble(text, free=True, passing=True, there=False)
    if _has_cause(error, ssl.SSLCertVerificationError):
        return Trouble("shows a certificate that is not trusted; ca_file names others", free=True)
    if _has_cause(error, ssl.SSLError) and not sent:
        return Trouble("speaks no TLS that is understood here", free=True)
    if isinstance(error, httpx.ConnectError):
        return Trouble("cannot be reached", free=True, passing=True, there=False)
    text = f"cut the call off ({type(error).__name__})"
    return Trouble(text, free=not sent, passing=True, there=False)


def _has_cause(error: BaseException, kind: type[BaseException]) -> bool:
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, kind):
            return True
        link = link.__cause__ or link.__context__
    return False


def _trust(name: str, ca_file: str | None) -> ssl.SSLContext:
    if ca_file is None:
        return _usual(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ValueError) as error:
        raise LoadError(f"{name}: ca_file holds no certificates that can be read") from error


@lru_cache(maxsize=4)
def _usual(*_: str | None) -> ssl.SSLContext:
    """What is trusted under these variables; kept, as reading all authorities takes 0.1 s."""
    return httpx.create_ssl_context()
