"""The Open Inference Protocol over REST."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from schemas.cards import Card
from workers.backends import Call
from workers.backends.open_inference_codec import Tensor
from workers.backends.open_inference_messages import model_of, object_of, request_of, tensors_of
from workers.backends.open_inference_model import Model
from workers.backends.open_inference_wire import Ask, NotYet, Place
from workers.backends.remote import Remote
from workers.backends.remote_faults import Refusal, Trouble
from workers.backends.remote_keys import Keys
from workers.backends.remote_probe import Probe
from workers.backends.remote_wire import Limits, broken, client_of, read, url_of
from workers.errors import LoadError

T = TypeVar("T")

_EXTENSIONS = frozenset({"binary_tensor_data", "binary_data"})
_MOST_TOLD = 1024 * 1024
_READY = "/v2/health/ready"


class RestWire:
    """`url` is the server's, before `/v2`. `binary`: raw tensors, None: where the server says that it can."""

    def __init__(
        self, capability: str, url: str, place: Place, limits: Limits, keys: Keys, binary: bool | None
    ) -> None:
        given = url_of(capability, url)
        if given.query or given.fragment or given.userinfo:
            raise LoadError(f"{capability}: its URL has a query or a key; write http://HOST:PORT alone")
        self.host = given.netloc.decode()
        self._base = str(given).rstrip("/").removesuffix("/v2")
        self._place = place
        version = f"/versions/{quote(place.version, safe='')}" if place.version else ""
        self._model = f"/v2/models/{quote(place.model, safe='')}{version}"
        self._target = httpx.URL(f"{self._base}{self._model}/infer")
        self._capability, self._limits, self._keys, self._binary = capability, limits, keys, binary
        self._raw = bool(binary)
        probe = Probe(httpx.URL(f"{self._base}{_READY}"), keys, refuses=_passes)
        self._remote = Remote(capability, limits, keys, explained, probe)

    @property
    def reachable(self) -> bool | None:
        return self._remote.reachable

    def start(self) -> None:
        self._remote.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._remote.run_one(work)

    def close(self) -> None:
        self._remote.close()

    async def look(self) -> Model:
        async with client_of(self._capability, self._limits) as client:
            status, _ = await self._get(client, _READY)
            if status != 200:
                raise NotYet(_unready(status), away=_passes(status))
            status, _ = await self._get(client, f"{self._model}/ready")
            if status != 200:
                raise await self._missing(client, status)
            about = object_of((await self._get(client, "/v2"))[1])
            status, body = await self._get(client, self._model)
            if status != 200:
                text = f"the server answered {status} when asked about {self._place}"
                raise NotYet(text, away=_passes(status))
            model = model_of(about, object_of(body))
        if self._binary is None:
            self._raw = bool(_EXTENSIONS & set(model.extensions))
        return model

    async def infer(self, card: Card, ask: Ask, call: Call) -> list[Tensor]:
        body, headers = request_of(ask, raw=self._raw)
        return tensors_of(await self._remote.post(card, self._target, body, call, headers))

    async def _get(self, client: httpx.AsyncClient, path: str, method: str = "GET") -> tuple[int, bytes]:
        body = b"{}" if method == "POST" else None
        try:
            async with client.stream(
                method, self._base + path, content=body, headers=self._keys.headers()
            ) as response:
                if response.status_code in (401, 403):
                    raise LoadError(
                        f"the server answered {response.status_code}: the key is missing or refused"
                    )
                return response.status_code, await read(response, _MOST_TOLD)
        except httpx.HTTPError as error:
            trouble = broken(error, self._limits.connect_s, sent=True)
            raise NotYet(f"the server {trouble}", away=trouble.passing) from error
        except Trouble as trouble:
            raise NotYet(f"the server {trouble}") from trouble

    async def _missing(self, client: httpx.AsyncClient, status: int) -> NotYet:
        """What is wrong with a model that is not ready, and which others the server lists."""
        if status == 404:
            text = f"the server has no {self._place}"
        else:
            text = f"{self._place} is not there or not ready: the server answered {status}"
        try:
            _, body = await self._get(client, "/v2/repository/index", "POST")
            models = msgspec.json.decode(body, type=list[_Listed])
        except (NotYet, msgspec.MsgspecError):
            return NotYet(text, away=_passes(status))
        names = sorted({model.name for model in models})
        # Triton answers 400 both for a model that it has not and for one that is still being loaded.
        away = _passes(status) and self._place.model in names
        return NotYet(f"{text}; it has {', '.join(names) or 'none'}", away=away)


class _Listed(msgspec.Struct):
    name: str


def _passes(status: int) -> bool:
    """Whether a status may be one of a server or model that is being made ready."""
    return status >= 500 or status in (400, 408, 425, 429)


def _unready(status: int) -> str:
    more = "" if _passes(status) else f": it answered {status} at {_READY}; look at its URL"
    return f"the server is not ready{more}"


def explained(status: int, body: bytes) -> Refusal | None:
    """What a refusal of this protocol means. The server's own words may quote inputs, and are not told."""
    if status == 404:
        return Refusal("it has no such model, or no longer this version of it")
    return None
