"""One capability behind a plain HTTP endpoint, such as a task's `fallback_url`.

A row is one POST of JSON: its inputs at the top level, and `params` where there are any,
`{"image_url": "https://...", "params": {"length": 40}}`; bytes are base64. Headers: `Idempotency-Key` (the
subtask's id: a redelivered subtask comes under the same key) and `Edgeway-Capability`. docs/library.md says
what may be answered.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import httpx
import msgspec

from schemas.cards import Card
from workers.backends import Answer, Call, Row, kin_of
from workers.backends.http_answer import answer_of
from workers.backends.remote import Remote
from workers.backends.remote_faults import Trouble
from workers.backends.remote_keys import Key, Keys
from workers.backends.remote_options import Options, url_without_key
from workers.backends.remote_probe import Probe
from workers.backends.remote_redirects import same_origin
from workers.backends.remote_wire import USUAL, Limits, url_of
from workers.errors import BadInput, LoadError


class _Place(NamedTuple):
    card: Card
    url: httpx.URL | None
    keys: Keys


class HttpBackend:
    """`url` answers for the capability of `card`; rows of a batch are asked side by side.

    `keys` are headers that hold secrets. What is retried, followed and told: `workers.backends.remote`. An
    error says a cost of 0 where the call was surely not carried out, and none where nobody knows.
    `probe_url` is asked by GET whether a service that was away is back; without it nothing is.
    """

    threads = 4
    """How many batches may be under way at the same time: a slow endpoint holds a thread, not a core."""

    def __init__(
        self,
        card: Card,
        url: str,
        *,
        limits: Limits = USUAL,
        keys: Keys | None = None,
        probe_url: str | None = None,
    ) -> None:
        self.point(card, url, keys)
        probe = None if probe_url is None else _probe(card.capability, url, probe_url, keys or Keys())
        self._remote = Remote(card.capability, limits, keys, probe=probe)

    @property
    def card(self) -> Card:
        return self._place.card

    def point(self, card: Card, url: str | None, keys: Keys | None = None) -> None:
        """From the next call on ask `url` (None: refuse every call) under `card`, with these secret headers.

        Raises:
            LoadError: no http or https URL.
        """
        # Replaced as a whole: a call that is under way never sends the new keys to the old place.
        self._place = _Place(card, None if url is None else url_of(card.capability, url), keys or Keys())

    async def load(self) -> None:
        await asyncio.to_thread(self._remote.start)

    def kin(self, row: Row) -> Hashable:
        return kin_of(row)

    def infer(self, rows: Sequence[Row]) -> list[Answer]:
        until = time.monotonic() + self._remote.limits.timeout_s
        return self.infer_calls(rows, [Call("", until)] * len(rows))

    def infer_calls(self, rows: Sequence[Row], calls: Sequence[Call]) -> list[Answer]:
        place = self._place
        pairs = zip(rows, calls, strict=True)
        return self._remote.run(place.card, [self._one(row, call, place) for row, call in pairs])

    def reachable(self) -> bool | None:
        return self._remote.reachable

    def close(self) -> None:
        self._remote.close()

    async def _one(self, row: Row, call: Call, place: _Place) -> Answer:
        card, url, keys = place
        if url is None:
            gone = Trouble("the rules name no fallback_url for it any more", free=True)
            return gone.answer(card.capability)
        body = body_of(row)
        try:
            reply = await self._remote.post(card, url, body, call, keys=keys)
            return answer_of(reply.body)
        except Trouble as trouble:
            return trouble.answer(card.capability, url.host)


def _probe(capability: str, url: str, probe_url: str, keys: Keys) -> Probe:
    """Keys stay with the service."""
    service, asked = url_of(capability, url), url_of(capability, probe_url)
    if same_origin(service, asked):
        return Probe(asked, keys)
    return Probe(asked, Keys(), apart=True)


def body_of(row: Row) -> bytes:
    """What is posted for a row.

    Raises:
        BadInput: an input named `params` beside params, or something that JSON has no word for.
    """
    body = dict(row.inputs)
    if row.params:
        if "params" in body:
            raise BadInput("inputs.params stands in the way of the request's params; rename the input")
        body["params"] = row.params
    try:
        return msgspec.json.encode(body)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput("the inputs cannot be written as JSON") from error


def build(card: Card, options: Mapping[str, Any]) -> HttpBackend:
    """Options: `url`; as wanted `headers_env`, a header's name to the environment variable that holds its
    value, `probe_url`, and those of `workers.backends.remote_options`.

    Raises:
        LoadError: others, or no http or https URL.
    """
    read = Options(card.capability, "http", options)
    url, named, probe_url = read.text("url"), read.texts_by_name("headers_env"), read.text("probe_url")
    limits = read.limits()
    read.end()
    if url is None:
        raise LoadError(f"{card.capability}: an http backend needs the option url")
    url_without_key(card.capability, url)
    if probe_url is not None:
        url_without_key(card.capability, probe_url)
    keys = Keys({name: Key(env=variable) for name, variable in named.items()})
    return HttpBackend(card, url, limits=limits, keys=keys, probe_url=probe_url)
