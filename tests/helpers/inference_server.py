"""A small model behind the Open Inference Protocol, over gRPC and REST, that fails as it is told.

The model `double` has input `x` FP32 [-1, 2] and output `y`, twice as much. Real ones: tests.helpers.servers.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from tests.helpers.faulty_server import Asked, Fault, FaultyServer
from tests.helpers.redis import free_port
from workers.backends.open_inference_codec import from_raw
from workers.backends.open_inference_messages import HEADER
from workers.backends.open_inference_proto import open_inference_pb2 as messages

METADATA = {
    "name": "double",
    "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 2]}],
    "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 2]}],
}


def rest_answer(asked: Asked) -> Any:
    """The answer of a REST server to any call."""
    if asked.path == "/v2":
        return {"name": "fake", "version": "1", "extensions": []}
    if asked.path.endswith("/infer"):
        (given,) = asked.json()["inputs"]
        doubled = given | {"name": "y", "data": [2 * value for value in given["data"]]}
        return {"model_name": "double", "id": asked.json().get("id"), "outputs": [doubled]}
    return METADATA


def numbers_of(asked: Asked) -> list[float]:
    """What a REST call asks, empty for one that asks no inference."""
    if not asked.path.endswith("/infer"):
        return []
    return [float(value) for value in asked.json()["inputs"][0]["data"]]


def binary(server: FaultyServer) -> None:
    """Make a REST server one that says and answers the binary extension."""

    def fault(asked: Asked) -> Fault | None:
        if asked.path == "/v2":
            body = json.dumps({"name": "fake", "extensions": ["binary_tensor_data"]}).encode()
            return Fault(body=body)
        if not asked.path.endswith("/infer"):
            return None
        size = int(asked.headers[HEADER])
        head = json.loads(asked.body[:size])
        assert head["parameters"]["binary_data_output"] is True
        (given,) = head["inputs"]
        assert given["parameters"]["binary_data_size"] == len(asked.body) - size
        tensor = from_raw("x", given["datatype"], given["shape"], asked.body[size:])
        raw = (tensor.array * 2).tobytes()
        output = {"name": "y", "datatype": "FP32", "shape": given["shape"]}
        said = {"outputs": [output | {"parameters": {"binary_data_size": len(raw)}}]}
        text = json.dumps(said).encode()
        return Fault(headers={HEADER: str(len(text))}, body=text + raw)

    server.fault = fault


class Refused(Exception):
    """A status that a gRPC server answers with."""

    def __init__(self, code: str, details: str = "", pushback_ms: int | None = None) -> None:
        super().__init__(details)
        self.code = grpc.StatusCode[code]
        self.metadata = (("grpc-retry-pushback-ms", str(pushback_ms)),) if pushback_ms is not None else ()


class GrpcServer:
    """`fault` sees each request for inference and may raise Refused, wait on `released`, or return another
    answer. `requests` keeps them with their metadata.
    """

    def __init__(self, certificate: tuple[Path, Path] | None = None) -> None:
        self.fault: Callable[[Any], Any] = lambda _: None
        self.requests: list[tuple[Any, dict[str, str]]] = []
        self.released = threading.Event()
        self._certificate = certificate
        self._port = free_port()
        self._server: Any = None
        self.url = f"{'grpcs' if certificate else 'grpc'}://127.0.0.1:{self._port}"

    def start(self) -> None:
        self._server = grpc.server(ThreadPoolExecutor(8))
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, self._methods()),)
        )
        if self._certificate is None:
            self._server.add_insecure_port(f"127.0.0.1:{self._port}")
        else:
            made, key = (path.read_bytes() for path in self._certificate)
            trust = grpc.ssl_server_credentials([(key, made)])
            self._server.add_secure_port(f"127.0.0.1:{self._port}", trust)
        self._server.start()

    def stop(self) -> None:
        self.released.set()
        if self._server is not None:
            self._server.stop(0).wait(5)
        self._server = None

    def _methods(self) -> dict[str, Any]:
        told = messages.ModelMetadataResponse(name="double")
        told.inputs.add(name="x", datatype="FP32", shape=[-1, 2])
        told.outputs.add(name="y", datatype="FP32", shape=[-1, 2])
        plain = {
            "ServerReady": messages.ServerReadyResponse(ready=True),
            "ModelReady": messages.ModelReadyResponse(ready=True),
            "ServerMetadata": messages.ServerMetadataResponse(name="fake", version="1"),
            "ModelMetadata": told,
        }
        methods = {name: _method(name, lambda _, __, answer=answer: answer) for name, answer in plain.items()}
        return methods | {"ModelInfer": _method("ModelInfer", self._infer)}

    def _infer(self, request: Any, context: Any) -> Any:
        self.requests.append((request, dict(context.invocation_metadata())))
        try:
            answer = self.fault(request)
        except Refused as refused:
            context.set_trailing_metadata(refused.metadata)
            context.abort(refused.code, str(refused))
        return answered(request) if answer is None else answer


def answered(request: Any, *, raw: bool = True) -> Any:
    """The right answer, its values raw or in words of protobuf."""
    (given,) = request.inputs
    array = from_raw("x", given.datatype, list(given.shape), request.raw_input_contents[0]).array * 2
    answer = messages.ModelInferResponse(model_name="double", id=request.id)
    output = answer.outputs.add(name="y", datatype="FP32", shape=list(array.shape))
    if raw:
        answer.raw_output_contents.append(array.tobytes())
    else:
        output.contents.fp32_contents.extend(array.ravel().tolist())
    return answer


@contextmanager
def grpc_server(certificate: tuple[Path, Path] | None = None) -> Iterator[GrpcServer]:
    """A started server, stopped at the end."""
    server = GrpcServer(certificate)
    server.start()
    try:
        yield server
    finally:
        server.stop()


SERVICE = "inference.GRPCInferenceService"


def _method(name: str, answer: Callable[[Any, Any], Any]) -> Any:
    return grpc.unary_unary_rpc_method_handler(
        answer,
        request_deserializer=getattr(messages, f"{name}Request").FromString,
        response_serializer=lambda message: message.SerializeToString(),
    )
