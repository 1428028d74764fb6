"""Fetching what a request names by URL: from the hosts that the rules allow, never from a private address."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Iterable
from typing import Final

import httpx

from workers.errors import BadInput

MAX_BYTES: Final = 10 * 1024 * 1024
TOTAL_S: Final = 10.0
MOST_REDIRECTS: Final = 3
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_PORTS: Final = {"http": 80, "https": 443}


class Unreachable(Exception):
    """An allowed host that did not give what was asked. The message quotes no URL."""


class Allowed:
    """The hosts of the rules: `HOST`, `HOST:PORT`, `*.DOMAIN` for all below one. Without a port that of the
    scheme is meant.
    """

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        self._hosts = frozenset(host.lower().rstrip(".") for host in hosts)

    def lists(self, host: str, port: int, scheme: str) -> bool:
        """Whether `host:port` may be asked at all."""
        return any(name in self._hosts for name in _names(host, port, scheme))

    def names_address(self, host: str, port: int, scheme: str) -> bool:
        """Whether the operator listed this very address, private or not."""
        return _address(host) is not None and self.lists(host, port, scheme)


class Fetcher:
    """Gets small files. `allowed` may be set anew at any time.

    The address is looked up once, checked, and connected to: a name that points elsewhere a moment later
    leads nowhere. Each redirect is checked as the first URL was. Proxies of the environment are not used.
    """

    def __init__(self, *, max_bytes: int = MAX_BYTES, total_s: float = TOTAL_S) -> None:
        self.allowed = Allowed()
        self._max_bytes = max_bytes
        self._total_s = total_s

    def get(self, text: str) -> bytes:
        """The body behind a URL. Blocks.

        Raises:
            BadInput: no URL, a host that is not allowed, a private address, too large, or not there.
            Unreachable: the host fails, or takes too long.
        """
        return asyncio.run(self._get(text))

    async def _get(self, text: str) -> bytes:
        try:
            async with asyncio.timeout(self._total_s), _client() as client:
                for _ in range(1 + MOST_REDIRECTS):
                    body, text = await self._hop(client, text)
                    if body is not None:
                        return body
        except TimeoutError:
            raise Unreachable(f"its host took longer than {self._total_s:.0f} s") from None
        except httpx.HTTPError as error:
            raise Unreachable(f"its host cannot be asked ({type(error).__name__})") from error
        raise BadInput(f"it is redirected more than {MOST_REDIRECTS} times")

    async def _hop(self, client: httpx.AsyncClient, text: str) -> tuple[bytes | None, str]:
        """The body, or None and where it is now."""
        url = _url(text)
        host, port = url.host.lower().rstrip("."), url.port or _PORTS[url.scheme]
        if not self.allowed.lists(host, port, url.scheme):
            raise BadInput("its host is not listed under `hosts` in the rules")
        address = await self._look_up(host, port, url.scheme)
        request = client.build_request(
            "GET",
            url.copy_with(host=address, userinfo=b""),
            headers={"host": url.netloc.decode("ascii").rpartition("@")[2]},
            extensions={"sni_hostname": host},
        )
        async with contextlib.aclosing(await client.send(request, stream=True)) as response:
            if response.is_redirect:
                return None, str(url.join(response.headers.get("location", "")))
            if response.status_code >= 500 or response.status_code == 429:
                raise Unreachable(f"its host answered {response.status_code}")
            if response.status_code != 200:
                raise BadInput(f"its host answered {response.status_code}")
            return await self._read(response), ""

    async def _look_up(self, host: str, port: int, scheme: str) -> str:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise Unreachable("its host has no address") from error
        addresses = [str(entry[4][0]) for entry in found]
        # One private address among several is enough: which one is taken must not be left to chance.
        if not all(is_public(address) for address in addresses) and not self.allowed.names_address(
            host, port, scheme
        ):
            raise BadInput("its host has a private address")
        return addresses[0]

    async def _read(self, response: httpx.Response) -> bytes:
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > self._max_bytes:
                raise BadInput(f"it is larger than the {self._max_bytes} bytes that are fetched")
        return bytes(body)


def _client() -> httpx.AsyncClient:
    headers = {"accept": "image/*", "accept-encoding": "identity", "user-agent": "edgeway"}
    return httpx.AsyncClient(
        trust_env=False, follow_redirects=False, headers=headers, timeout=httpx.Timeout(TOTAL_S)
    )


def _url(text: str) -> httpx.URL:
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, TypeError) as error:
        raise BadInput("it is no URL") from error
    if url.scheme not in _PORTS or not url.host:
        raise BadInput("it is no http or https URL")
    return url


def _names(host: str, port: int, scheme: str) -> Iterable[str]:
    """Every entry of the rules that would allow `host:port`."""
    shown = f"[{host}]" if ":" in host else host
    labels = host.split(".")
    stars = [] if _address(host) else [f"*.{'.'.join(labels[at:])}" for at in range(1, len(labels))]
    for name in (shown, *stars):
        yield f"{name}:{port}"
        if port == _PORTS[scheme]:
            yield name


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def is_public(text: str) -> bool:
    """Whether an IP address is of the public network: neither private nor reserved, nor leading to such a
    one by translation.

    Raises:
        ValueError: it is no address.
    """
    address = ipaddress.ip_address(text.partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None) or getattr(address, "sixtofour", None)
    if address in _NAT64:
        mapped = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    elif mapped is None and address.is_reserved:
        return False
    return address.is_global and not address.is_multicast and (mapped is None or mapped.is_global)
