"""The clients with event loops."""

from __future__ import annotations

import os
import random
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from edgeway.client.caller import Caller
from edgeway.client.connection import Address, address_of, token_of
from edgeway.client.over_kafka import OverKafka
from edgeway.client.ports import Transport
from edgeway.client.quiet import spare_the_log
from edgeway.client.retrying import RETRIES, Clock, Jitter, RealClock, Retries
from edgeway.errors import UsageError
from edgeway.exchange.ports import Exchange
from streams.settings import Secret, Settings, client_options

SOURCE = "edgeway/client"


class Client(Caller):
    """Edgeway over Kafka, or over HTTP where the URL says so.

    ::

        async with edgeway.Client("kafka://localhost:9092") as client:
            result = await client.route(task="intent", inputs={"text": "where is my card"})

    `url` is kafka://HOST:PORT[,HOST:PORT...], kafka+ssl://..., http://... or https://...; without it
    EDGEWAY_KAFKA, or 127.0.0.1:9092. `connection` are the settings of Kafka by their names
    (`security_protocol`, `sasl_username`, `ssl_cafile`, ...), which may also stand behind the `?` of the URL
    or in EDGEWAY_* variables; for https `ssl_cafile`, `ssl_certfile`, `ssl_keyfile`, `ssl_check_hostname`.
    `token` is a gateway's, `tenant` whose requests they are. `retries`, `jitter` and `clock` say how tries
    are repeated.

    Raises:
        UsageError: the URL or a setting cannot be used; no secret stands in its text.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        tenant: str | None = None,
        retries: Retries = RETRIES,
        jitter: Jitter = random.random,
        clock: Clock | None = None,
        **connection: Any,
    ) -> None:
        address = address_of(url, connection, os.environ)
        if token is not None and address.kind == "kafka":
            raise UsageError(
                "a token is for a gateway (http://, https://); Kafka takes sasl_username and more"
            )
        clock = RealClock() if clock is None else clock
        transport = _transport(address, token_of(token), retries, jitter, clock)
        super().__init__(transport, address.shown, clock, tenant)


class HttpClient(Client):
    """Edgeway through a gateway: `Client` for http:// and https:// alone, which needs no Kafka in reach."""

    def __init__(self, url: str, *, token: str | None = None, **more: Any) -> None:
        if not str(url).startswith(("http://", "https://")):
            raise UsageError("an HttpClient takes http://HOST:PORT or https://HOST:PORT")
        super().__init__(url, token=token, **more)


def _transport(
    address: Address, token: Secret | None, retries: Retries, jitter: Jitter, clock: Clock
) -> Transport:
    if address.kind == "kafka":
        return OverKafka(lambda: _exchange(address.settings), retries, jitter, clock)
    from edgeway.client.over_http import OverHttp, http_client

    verify = _verify(address.settings)
    return OverHttp(lambda: http_client(address.shown, token, verify), retries, jitter, clock)


@asynccontextmanager
async def _exchange(settings: Settings) -> AsyncIterator[Exchange]:
    # aiokafka is loaded here, by those who need it.
    from edgeway.exchange.kafka import KafkaExchange

    spare_the_log()
    async with KafkaExchange(settings, source=SOURCE) as exchange:
        yield exchange


def _verify(settings: Settings) -> ssl.SSLContext | bool:
    options: Mapping[str, Any] = client_options(settings)
    found: ssl.SSLContext | None = options.get("ssl_context")
    return True if found is None else found
