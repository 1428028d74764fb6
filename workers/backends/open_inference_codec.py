"""Tensors of the Open Inference Protocol, version 2, to and from their two forms on the wire: pure.

Raw: the values little-endian, row by row; each of BYTES after its length in four bytes. JSON: a flat list.
BF16, which numpy does not have, is float32 in memory. https://github.com/kserve/open-inference-protocol
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from workers.backends.remote_faults import Trouble
from workers.backends.tensors import Array
from workers.errors import BadInput

DTYPES = {
    "BOOL": "?",
    "UINT8": "<u1",
    "UINT16": "<u2",
    "UINT32": "<u4",
    "UINT64": "<u8",
    "INT8": "<i1",
    "INT16": "<i2",
    "INT32": "<i4",
    "INT64": "<i8",
    "FP16": "<f2",
    "FP32": "<f4",
    "FP64": "<f8",
    "BF16": "<f4",
    "BYTES": "O",
}
"""Every datatype of the protocol, and the numpy type that holds it."""

_LENGTH = struct.Struct("<I")


class Tensor(NamedTuple):
    """`array` has the whole shape; the elements of BYTES are bytes on the way out, and on the way back text
    where they are UTF-8.
    """

    name: str
    datatype: str
    array: Array


def raw_of(tensor: Tensor) -> bytes:
    """The raw form."""
    array = tensor.array
    if tensor.datatype == "BYTES":
        return packed(array.ravel().tolist())
    if tensor.datatype == "BF16":
        return _bf16(array).tobytes()
    return np.ascontiguousarray(array, DTYPES[tensor.datatype]).tobytes()


def packed(values: Iterable[bytes]) -> bytes:
    """The raw form of BYTES."""
    return b"".join(_LENGTH.pack(len(value)) + value for value in values)


def from_raw(name: str, datatype: str, shape: Sequence[int], raw: bytes) -> Tensor:
    """The tensor of a raw form.

    Raises:
        Trouble: an unknown datatype, or bytes that do not fill the shape.
    """
    count = _count(name, datatype, shape)
    if datatype == "BYTES":
        values: Sequence[Any] = _texts(name, raw)
        if len(values) != count:
            raise _misfit(name, shape, f"{len(values)} values")
        return Tensor(name, datatype, _objects(values).reshape(shape))
    dtype = np.dtype("<u2" if datatype == "BF16" else DTYPES[datatype])
    if len(raw) != count * dtype.itemsize:
        raise _misfit(name, shape, f"{len(raw)} bytes")
    array: Array = np.frombuffer(raw, dtype)
    if datatype == "BF16":
        array = (array.astype("<u4") << 16).view("<f4")
    return Tensor(name, datatype, array.reshape(shape))


def json_of(tensor: Tensor) -> list[Any]:
    """The JSON form.

    Raises:
        BadInput: bytes that are no UTF-8, for which JSON has no word.
    """
    if tensor.datatype != "BYTES":
        return list(tensor.array.ravel().tolist())
    try:
        return [value.decode() for value in tensor.array.ravel().tolist()]
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{tensor.name} holds bytes that are no UTF-8, which this server takes over gRPC alone"
        ) from error


def from_json(name: str, datatype: str, shape: Sequence[int], data: Any) -> Tensor:
    """The tensor of a JSON form, flat or nested; null, which servers write for NaN, is NaN.

    Raises:
        Trouble: an unknown datatype, or values of another one, or too few or too many.
    """
    count = _count(name, datatype, shape)
    flat = _flat(data)
    if len(flat) != count:
        raise _misfit(name, shape, f"{len(flat)} values")
    if datatype == "BYTES":
        if not all(isinstance(value, str) for value in flat):
            raise _bad(f"{name!r} holds something else than text")
        return Tensor(name, datatype, _objects(flat).reshape(shape))
    return Tensor(name, datatype, _numbers(name, datatype, flat).reshape(shape))


def _numbers(name: str, datatype: str, flat: list[Any]) -> Array:
    dtype = np.dtype(DTYPES[datatype])
    kinds = {"b": (bool,), "f": (int, float, type(None))}.get(dtype.kind, (int,))
    if not all(type(value) in kinds for value in flat):
        raise _bad(f"{name!r} holds something else than {datatype}")
    try:
        with np.errstate(over="ignore"):
            return np.array(flat, dtype)
    except OverflowError as error:
        raise _bad(f"{name!r} holds a number beyond {datatype}") from error


def _bf16(array: Array) -> Array:
    """The upper half of float32, rounded to the nearest, ties to even; NaN stays NaN."""
    bits = np.ascontiguousarray(array, "<f4").view("<u4")
    rounded = (bits + (0x7FFF + ((bits >> 16) & 1))) >> 16
    return np.where(np.isnan(array), 0x7FC0, rounded).astype("<u2")


def _texts(name: str, raw: bytes) -> list[str | bytes]:
    values: list[str | bytes] = []
    place = 0
    while place < len(raw):
        end = place + _LENGTH.size
        if end > len(raw):
            raise _bad(f"{name!r} ends within a length")
        (length,) = _LENGTH.unpack_from(raw, place)
        place = end + length
        if place > len(raw):
            raise _bad(f"{name!r} ends within a value")
        values.append(text_of(raw[end:place]))
    return values


def text_of(value: bytes) -> str | bytes:
    """The text, where it is UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _objects(values: Sequence[Any]) -> Array:
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _flat(data: Any) -> list[Any]:
    """The values of nested lists. Level by level, so that no depth exhausts the stack."""
    if not isinstance(data, list):
        raise _bad("tensors without data")
    flat: list[Any] = data
    while any(isinstance(value, list) for value in flat):
        if not all(isinstance(value, list) for value in flat):
            raise _bad("tensors whose lists differ in depth")
        flat = [value for part in flat for value in part]
    return flat


def _count(name: str, datatype: str, shape: Sequence[int]) -> int:
    if datatype not in DTYPES:
        raise _bad(f"{name!r} of an unknown datatype")
    if any(size < 0 for size in shape):
        raise _bad(f"{name!r} of a shape that is none")
    count = 1
    for size in shape:
        count *= size
    return count


def _misfit(name: str, shape: Sequence[int], found: str) -> Trouble:
    return _bad(f"{name!r} of shape {list(shape)} with {found}")


def _bad(text: str) -> Trouble:
    return Trouble(f"answered {text}", code="bad_output")
