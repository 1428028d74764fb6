"""A look over HTTP: one GET of something free, under the rules of calls for keys, TLS and redirects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import httpx

from workers.backends.remote_faults import GATEWAY, Trouble
from workers.backends.remote_keys import Keys
from workers.backends.remote_lookout import CONNECT_S
from workers.backends.remote_reach import Sight
from workers.backends.remote_redirects import MOST_HOPS, is_redirect, next_hop, same_origin
from workers.backends.remote_wire import Limits, broken, client_of
from workers.errors import LoadError


def of_gateway(status: int) -> bool:
    """Whether it is a gateway's word for a service that is away; any other says that something answers."""
    return status in GATEWAY


class Probe(NamedTuple):
    """What is asked. `refuses` says which statuses mean that the service is away. `apart`: at another place
    than the calls, whose silence proves less."""

    url: httpx.URL
    keys: Keys
    headers: Mapping[str, str] = {}
    refuses: Callable[[int], bool] = of_gateway
    apart: bool = False


async def sight_of(name: str, probe: Probe, limits: Limits) -> Sight:
    """What a look finds. The body is not read."""
    # A client of its own: the pool of the calls may be full of those that wait for the dead service.
    brief = limits._replace(connect_s=min(CONNECT_S, limits.connect_s))
    try:
        async with client_of(name, brief) as client:
            status = await _status(client, probe, limits)
    except httpx.HTTPError as error:
        return _sight(error, probe, brief)
    except LoadError:
        # A key or the certificates went: nothing was asked.
        return "refuses"
    except Trouble:
        # A redirect that is not followed.
        return "there"
    return "refuses" if probe.refuses(status) else "there"


async def _status(client: httpx.AsyncClient, probe: Probe, limits: Limits) -> int:
    """Raises Trouble where a redirect is not followed."""
    target, status = probe.url, 0
    for _ in range(MOST_HOPS + 1):
        sent = dict(probe.headers)
        if same_origin(probe.url, target):
            sent |= probe.keys.headers()
        async with client.stream("GET", target, headers=sent, follow_redirects=False) as response:
            status, location = response.status_code, response.headers.get("location")
        if not is_redirect(status):
            break
        target = next_hop(target, status, location, limits.hosts)
    return status


def _sight(error: httpx.HTTPError, probe: Probe, limits: Limits) -> Sight:
    if broken(error, limits.connect_s, sent=False).there is None:
        # TLS that is not trusted or understood: something answers, and no wait will mend it.
        return "there"
    unconnected = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
    return "gone" if unconnected and not probe.apart else "refuses"
