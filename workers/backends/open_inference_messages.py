"""Messages of the protocol over REST: JSON, and raw tensors after it where the server can. Pure.

https://github.com/kserve/open-inference-protocol, and Triton's extension "binary_tensor_data", which KServe
has too: the header `Inference-Header-Content-Length` says where the JSON ends; the tensors follow in its
order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from workers.backends.open_inference_codec import Tensor, from_json, from_raw, json_of, raw_of
from workers.backends.open_inference_model import Model, Told
from workers.backends.open_inference_wire import Ask
from workers.backends.remote_faults import Trouble
from workers.backends.remote_wire import Reply
from workers.backends.remote_wire import json_of as value_of
from workers.errors import BadInput

HEADER = "inference-header-content-length"


def request_of(ask: Ask, *, raw: bool) -> tuple[bytes, dict[str, str]]:
    """Body and headers of a call.

    Raises:
        BadInput: what JSON has no word for.
    """
    head: dict[str, Any] = {"id": ask.id} if ask.id else {}
    params = dict(ask.params)
    if raw:
        params["binary_data_output"] = True
    if params:
        head["parameters"] = params
    pieces = [raw_of(tensor) for tensor in ask.inputs] if raw else []
    head["inputs"] = [
        _entry(tensor)
        | ({"parameters": {"binary_data_size": len(pieces[i])}} if raw else {"data": json_of(tensor)})
        for i, tensor in enumerate(ask.inputs)
    ]
    if ask.outputs:
        head["outputs"] = [{"name": name} for name in ask.outputs]
    try:
        text = msgspec.json.encode(head)
    except (UnicodeEncodeError, ValueError) as error:
        raise BadInput("the params cannot be written as JSON") from error
    if not raw:
        return text, {}
    headers = {"content-type": "application/octet-stream", "accept": "*/*", HEADER: str(len(text))}
    return b"".join([text, *pieces]), headers


def tensors_of(reply: Reply) -> list[Tensor]:
    """The outputs in a reply.

    Raises:
        Trouble: they cannot be read.
    """
    text, rest = reply.body, b""
    if HEADER in reply.headers:
        size = reply.headers[HEADER]
        if not size.isascii() or not size.isdigit() or len(size) > 12 or int(size) > len(text):
            raise Trouble(f"answered a {HEADER} that is none", code="bad_output")
        text, rest = text[: int(size)], text[int(size) :]
    said = value_of(text)
    outputs = said.get("outputs") if isinstance(said, dict) else None
    if not isinstance(outputs, list):
        raise Trouble("answered without outputs", code="bad_output")
    tensors: list[Tensor] = []
    place = 0
    for output in outputs:
        found = _read(output)
        raw = (found.parameters or {}).get("binary_data_size")
        if raw is None:
            tensors.append(from_json(found.name, found.datatype, found.shape, found.data))
            continue
        if type(raw) is not int or not 0 <= raw <= len(rest) - place:
            raise Trouble("answered fewer bytes than its outputs have", code="bad_output")
        tensors.append(from_raw(found.name, found.datatype, found.shape, rest[place : place + raw]))
        place += raw
    return tensors


def _read(output: Any) -> _Output:
    try:
        return msgspec.convert(output, _Output)
    except msgspec.ValidationError as error:
        raise Trouble("answered an output that is none", code="bad_output") from error


class _Output(msgspec.Struct):
    name: str
    datatype: str
    shape: list[int]
    parameters: dict[str, Any] | None = None
    data: Any = None


def _entry(tensor: Tensor) -> dict[str, Any]:
    return {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.array.shape)}


def model_of(about: Mapping[str, Any], told: Mapping[str, Any]) -> Model:
    """The model of what the server tells of itself and of it; what cannot be read counts as not told."""
    server = " ".join(str(about[key]) for key in ("name", "version") if isinstance(about.get(key), str))
    extensions = about.get("extensions")
    names = tuple(str(name) for name in extensions) if isinstance(extensions, list) else ()
    return Model(server, names, _tensors(told.get("inputs")), _tensors(told.get("outputs")))


def _tensors(told: Any) -> tuple[Told, ...]:
    try:
        return tuple(
            Told(t.name, t.datatype, tuple(t.shape)) for t in msgspec.convert(told or [], list[_Output])
        )
    except msgspec.ValidationError:
        return ()


def object_of(body: bytes) -> dict[str, Any]:
    """The object in a body of JSON, empty where there is none."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
