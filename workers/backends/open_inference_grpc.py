"""The Open Inference Protocol over gRPC, tensors raw. Needs the extra `grpc`."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from schemas.cards import Card
from workers.backends import Call
from workers.backends.open_inference_codec import Tensor, raw_of
from workers.backends.open_inference_grpc_messages import parameter_field, tensors_of, told_of
from workers.backends.open_inference_model import Model
from workers.backends.open_inference_status import UNREACHED, trouble_of
from workers.backends.open_inference_wire import Ask, NotYet, Place
from workers.backends.remote_attempts import Attempts
from workers.backends.remote_count import Counted, again
from workers.backends.remote_faults import Trouble
from workers.backends.remote_keys import Keys
from workers.backends.remote_lookout import CONNECT_S, LOOK_S, Lookout
from workers.backends.remote_loop import OwnLoop
from workers.backends.remote_reach import Sight
from workers.backends.remote_retries import Policy
from workers.backends.remote_wire import Limits
from workers.errors import BadInput, LoadError

T = TypeVar("T")

_SERVICE = "/inference.GRPCInferenceService/"
_METHODS = ("ServerReady", "ModelReady", "ServerMetadata", "ModelMetadata", "ModelInfer")
_LOOK_S = 5.0
_LEAST_S = 0.05
"""What a call needs at least once there is a connection."""


class GrpcWire:
    """`url` is grpc://HOST:PORT, or grpcs:// for TLS."""

    def __init__(self, capability: str, url: str, place: Place, limits: Limits, keys: Keys) -> None:
        self.host, self._tls = _host(capability, url)
        self._capability, self._place, self._limits, self._keys = capability, place, limits, keys
        self._loop = OwnLoop(capability)
        self._lookout = Lookout(capability, None)
        self._channel: Any = None
        self._messages: Any = None
        self._methods: dict[str, Any] = {}

    @property
    def reachable(self) -> bool | None:
        return self._lookout.known

    def start(self) -> None:
        if self._loop.runs:
            return
        try:
            grpc = importlib.import_module("grpc")
            name = "workers.backends.open_inference_proto.open_inference_pb2"
            self._messages = importlib.import_module(name)
        except ImportError as error:
            raise LoadError(f"{self._capability}: gRPC needs the extra edgeway[grpc] ({error})") from error
        try:
            self._keys.headers()
        except LoadError as error:
            raise LoadError(f"{self._capability}: {error}") from error
        options = _options(self._limits)
        if self._tls:
            trust = grpc.ssl_channel_credentials(root_certificates=self._roots())
            self._channel = grpc.secure_channel(self.host, trust, options=options)
        else:
            self._channel = grpc.insecure_channel(self.host, options=options)
        self._methods = {name: self._method(name) for name in _METHODS}
        self._lookout = Lookout(self._capability, self._sight)
        self._loop.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run(work)

    def close(self) -> None:
        channel, self._channel = self._channel, None
        self._lookout = Lookout(self._capability, None)

        async def end() -> None:
            if channel is not None:
                channel.close()

        self._loop.close(end)

    async def look(self) -> Model:
        kinds = self._messages
        model, version = self._place
        try:
            if not (await self._look("ServerReady", kinds.ServerReadyRequest())).ready:
                raise NotYet("the server is not ready", away=True)
            told = await self._look("ModelMetadata", kinds.ModelMetadataRequest(name=model, version=version))
            asked = kinds.ModelReadyRequest(name=model, version=version)
            if not (await self._look("ModelReady", asked)).ready:
                raise NotYet(f"{self._place} is not ready", away=True)
            about = await self._look("ServerMetadata", kinds.ServerMetadataRequest())
        except Trouble as trouble:
            # A refusal is final and free: no such model, no key, another protocol.
            away = trouble.passing or not trouble.free
            raise NotYet(f"the server, asked about {self._place}, {trouble}", away=away) from trouble
        server = " ".join(word for word in (about.name, about.version) if word)
        return Model(server, tuple(about.extensions), told_of(told.inputs), told_of(told.outputs))

    async def infer(self, card: Card, ask: Ask, call: Call) -> list[Tensor]:
        with Counted(card.capability):
            return await self._infer(card, ask, call)

    async def _infer(self, card: Card, ask: Ask, call: Call) -> list[Tensor]:
        request = self._request(ask)
        if (size := request.ByteSize()) > self._limits.request_bytes:
            raise BadInput(f"the request takes {size} bytes; {self._limits.request_bytes} may be")
        left_s = min(self._limits.timeout_s, call.until - time.monotonic())
        if left_s <= 0:
            raise Trouble("was not asked: the deadline had passed", code="deadline_exceeded", free=True)
        repeatable = bool(ask.id) and (card.max_cost == 0 or self._limits.idempotent)
        policy = Policy(self._limits.attempts, repeatable)
        attempts = Attempts(policy, time.monotonic() + left_s, self._keys)
        await self._admit(left_s)
        while True:
            attempts.number += 1
            try:
                left_s = attempts.until - time.monotonic()
                response = await self._call("ModelInfer", request, left_s, ask.id, call.traceparent)
                self._lookout.note(True)
                return tensors_of(response)
            except Trouble as trouble:
                self._lookout.note(trouble.there)
                pause = attempts.pause(trouble)
                gone = str(trouble) == UNREACHED
                if pause is None or (gone and not await self._connected(attempts.until)):
                    raise attempts.last(trouble) from trouble.__cause__
            again(card.capability)
            await asyncio.sleep(0.0 if gone else pause)

    async def _admit(self, left_s: float) -> None:
        """Raises Trouble while the server is known to be away."""
        try:
            async with asyncio.timeout(left_s):
                await self._lookout.admit()
        except TimeoutError:
            raise Trouble(f"could not be asked within {left_s:.1f} s", free=True) from None

    async def _sight(self) -> Sight:
        """Whether the server says that it is ready."""
        request = self._messages.ServerReadyRequest()
        try:
            answer = await self._call("ServerReady", request, CONNECT_S, "", wait=True)
        except Trouble as trouble:
            if trouble.there is not False:
                return "there"
        else:
            return "there" if answer.ready else "refuses"
        try:
            await self._call("ServerReady", request, LOOK_S - CONNECT_S, "")
        except Trouble as trouble:
            # What waited for a connection only says that it waited in vain.
            return "gone" if str(trouble) == UNREACHED else "refuses"
        return "refuses"

    async def _connected(self, until: float) -> bool:
        """Whether there is a connection within `connect_s`. Between its attempts at one grpc fails every call
        at once: a server that has just come back would seem to be away."""
        left_s = min(self._limits.connect_s, until - time.monotonic() - _LEAST_S)
        try:
            await self._call("ServerReady", self._messages.ServerReadyRequest(), left_s, "", wait=True)
        except Trouble:
            return False
        return True

    async def _look(self, method: str, request: Any) -> Any:
        return await self._call(method, request, _LOOK_S, "")

    async def _call(
        self,
        method: str,
        request: Any,
        timeout_s: float,
        key: str,
        traceparent: str | None = None,
        *,
        wait: bool = False,
    ) -> Any:
        """The answer; `wait` for a connection. Through a callback: grpc's own asyncio knows one loop a
        process.

        Raises:
            Trouble: there is none.
        """
        if self._channel is None:
            raise Trouble("was not asked: the backend is closed", free=True)
        try:
            metadata = self._metadata(key, traceparent)
        except LoadError as error:
            raise Trouble(f"was not asked: {error}", free=True) from error
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        future = self._methods[method].future(
            request, timeout=timeout_s, metadata=metadata, wait_for_ready=wait
        )
        future.add_done_callback(lambda _: _wake(loop, done))
        try:
            await done
        finally:
            future.cancel()
        code = future.code().name
        if code == "OK":
            return future.result()
        raise trouble_of(code, future.details() or "", _pushback(future.trailing_metadata()))

    def _method(self, name: str) -> Any:
        request, answer = (getattr(self._messages, f"{name}{what}") for what in ("Request", "Response"))
        return self._channel.unary_unary(
            _SERVICE + name,
            request_serializer=request.SerializeToString,
            response_deserializer=answer.FromString,
        )

    def _metadata(self, key: str, traceparent: str | None) -> list[tuple[str, str]]:
        found = {"edgeway-capability": self._capability, **self._keys.headers()}
        if key:
            found["idempotency-key"] = key
        if traceparent:
            found["traceparent"] = traceparent
        return list(found.items())

    def _request(self, ask: Ask) -> Any:
        request = self._messages.ModelInferRequest(
            model_name=self._place.model, model_version=self._place.version, id=ask.id
        )
        for name, value in ask.params.items():
            setattr(request.parameters[name], parameter_field(value), value)
        for tensor in ask.inputs:
            request.inputs.add(name=tensor.name, datatype=tensor.datatype, shape=tensor.array.shape)
            request.raw_input_contents.append(raw_of(tensor))
        for name in ask.outputs:
            request.outputs.add(name=name)
        return request

    def _roots(self) -> bytes | None:
        if self._limits.ca_file is None:
            return None
        try:
            return Path(self._limits.ca_file).read_bytes()
        except OSError as error:
            raise LoadError(f"{self._capability}: ca_file cannot be read ({error.strerror})") from error


def _wake(loop: asyncio.AbstractEventLoop, done: asyncio.Future[None]) -> None:
    """From a thread of grpc's."""

    def end() -> None:
        if not done.done():
            done.set_result(None)

    # Where the loop has ended nobody waits any more.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(end)


def _host(capability: str, url: str) -> tuple[str, bool]:
    """HOST:PORT, and whether by TLS."""
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("grpc", "grpcs") and parts.hostname and parts.port
    except ValueError:
        sound = False
    if not sound or parts.path not in ("", "/") or parts.query or parts.username:
        raise LoadError(f"{capability}: its URL cannot be read; write grpc://HOST:PORT, or grpcs:// for TLS")
    return parts.netloc, parts.scheme == "grpcs"


def _options(limits: Limits) -> list[tuple[str, int]]:
    return [
        ("grpc.max_send_message_length", limits.request_bytes + 1024),
        ("grpc.max_receive_message_length", limits.answer_bytes),
        ("grpc.enable_retries", 0),  # what may be made again is decided here, where its price is known
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.keepalive_time_ms", 30_000),
        # A server that was away is asked again within seconds, not after grpc's two minutes.
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", int(limits.connect_s * 1000)),
        ("grpc.max_reconnect_backoff_ms", 1000),
    ]


def _pushback(metadata: Any) -> str | None:
    return next((value for name, value in metadata or () if name == "grpc-retry-pushback-ms"), None)
