"""What stands in messages of the Open Inference Protocol over gRPC: pure."""

from __future__ import annotations

from typing import Any

from workers.backends.open_inference_codec import Tensor, from_json, from_raw, packed
from workers.backends.open_inference_model import Told
from workers.backends.remote_faults import Trouble

_CONTENTS = {
    "BOOL": "bool_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "UINT8": "uint_contents",
    "UINT16": "uint_contents",
    "UINT32": "uint_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}
"""Where the values of each datatype stand that a server sends in words of protobuf."""


def parameter_field(value: Any) -> str:
    """The field for a parameter; bool before int, which it is too."""
    if isinstance(value, bool):
        return "bool_param"
    if isinstance(value, int):
        return "int64_param"
    return "double_param" if isinstance(value, float) else "string_param"


def tensors_of(response: Any) -> list[Tensor]:
    """The outputs. Raises Trouble where their values do not go with them."""
    raw = response.raw_output_contents
    if raw and len(raw) != len(response.outputs):
        text = f"answered {len(response.outputs)} outputs with the values of {len(raw)}"
        raise Trouble(text, code="bad_output")
    return [_tensor(output, raw[i] if raw else None) for i, output in enumerate(response.outputs)]


def _tensor(output: Any, raw: bytes | None) -> Tensor:
    name, datatype, shape = output.name, output.datatype, list(output.shape)
    if raw is not None:
        return from_raw(name, datatype, shape, raw)
    field = _CONTENTS.get(datatype)
    values = list(getattr(output.contents, field)) if field else []
    if datatype == "BYTES":
        return from_raw(name, datatype, shape, packed(values))
    return from_json(name, datatype, shape, values)


def told_of(tensors: Any) -> tuple[Told, ...]:
    """What a model is told to take or to give."""
    return tuple(Told(tensor.name, tensor.datatype, tuple(tensor.shape)) for tensor in tensors)
