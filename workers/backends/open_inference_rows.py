"""Rows to tensors: what a subtask gives as one row of a model's input."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from workers.backends import Row, kin_of
from workers.backends.open_inference_codec import DTYPES, Tensor, raw_of
from workers.backends.tensors import Array
from workers.errors import BadInput

_FLOATS = frozenset({"FP16", "BF16", "FP32", "FP64"})
_DEEPEST = 32


class Port(NamedTuple):
    """One input of a model: `name` there, `source` in a subtask's inputs, its shape without the batch axis
    (None: any size).
    """

    name: str
    source: str
    datatype: str
    shape: tuple[int | None, ...]


class Rows:
    """Reads rows for the inputs of a model.

    Numbers come as nested or flat lists, or as raw little-endian bytes: float32 for every floating point
    input, else the input's own type. BYTES come as text or bytes, or lists of them.
    """

    def __init__(self, ports: Sequence[Port]) -> None:
        self.ports = tuple(ports)
        self._ragged = tuple(port.source for port in ports if None in port.shape)

    def kin(self, row: Row) -> Hashable:
        """Rows of equal outlines stack; those that all the same do not are asked apart."""
        if not self._ragged:
            return kin_of(row)
        return kin_of(row), *(_outline(row.inputs.get(source)) for source in self._ragged)

    def read(self, row: Row) -> tuple[Array, ...]:
        """One array an input, each of the row's shape.

        Raises:
            BadInput: absent, empty, of another type or size, or not finite.
        """
        return tuple(_read(port, row.inputs.get(port.source)) for port in self.ports)


def _read(port: Port, value: Any) -> Array:
    if value is None:
        raise BadInput(f"inputs.{port.source} is missing")
    if port.datatype == "BYTES":
        return _fit(port, _texts(port, value))
    if isinstance(value, bytes | bytearray | memoryview):
        given = _raw(port, bytes(value))
    else:
        given = _listed(port, value)
    return _fit(port, _cast(port, given))


def _texts(port: Port, value: Any) -> Array:
    """Texts as bytes, in the shape of their lists."""
    shape, flat = _unfolded(port, value)
    encoded: list[bytes] = []
    for text in flat:
        if isinstance(text, str):
            try:
                encoded.append(text.encode())
            except UnicodeEncodeError as error:
                raise BadInput(f"inputs.{port.source} holds half a surrogate pair") from error
        elif isinstance(text, bytes):
            encoded.append(text)
        else:
            raise BadInput(f"inputs.{port.source} holds something else than text or bytes")
    array = np.empty(len(encoded), object)
    array[:] = encoded
    return array.reshape(shape)


def _raw(port: Port, raw: bytes) -> Array:
    dtype = np.dtype("<f4" if port.datatype in _FLOATS else DTYPES[port.datatype])
    if len(raw) % dtype.itemsize:
        raise BadInput(f"inputs.{port.source} has {len(raw)} bytes; raw values have {dtype.itemsize} each")
    if port.datatype == "BOOL" and raw.strip(b"\0\1"):
        raise BadInput(f"inputs.{port.source} holds bytes that are neither 0 nor 1")
    return np.frombuffer(raw, dtype)


def _listed(port: Port, value: Any) -> Array:
    """Their types are looked at one by one: numpy would make one long text among numbers as many of them."""
    shape, flat = _unfolded(port, value)
    kinds = set(map(type, flat)) - {int, float} - ({bool} if port.datatype == "BOOL" else set())
    if kinds:
        raise BadInput(f"inputs.{port.source} holds {_names(kinds)}; give a list of numbers or raw bytes")
    return _numbers(port, flat).reshape(shape)


def _numbers(port: Port, flat: list[Any]) -> Array:
    """Whole numbers beyond 64 bits, and of both signs above 63, have no type of their own in numpy."""
    dtype = np.dtype(DTYPES[port.datatype])
    beyond = BadInput(f"inputs.{port.source} holds a number that is no {port.datatype}")
    if dtype.kind in "iu" and all(type(number) is int for number in flat):
        bounds = np.iinfo(dtype)
        if flat and not (bounds.min <= min(flat) and max(flat) <= bounds.max):
            raise beyond
        return np.array(flat, dtype)
    try:
        return np.array(flat, np.float64 if dtype.kind in "fiu" else None)
    except OverflowError as error:
        raise beyond from error


def _cast(port: Port, given: Array) -> Array:
    """In the input's own type, where every number has a place in it."""
    dtype = np.dtype(DTYPES[port.datatype])
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        raise BadInput(f"inputs.{port.source} holds NaN or an infinity")
    with np.errstate(over="ignore", invalid="ignore"):
        cast = given.astype(dtype)
    if port.datatype in _FLOATS:
        kept = np.isfinite(cast).all() and (port.datatype != "BF16" or _within_bf16(cast))
    else:
        # A float beyond int64 turns into a number that may compare equal once it is a float again.
        kept = (cast == given).all() and (given.dtype.kind != "f" or (np.abs(given) < 2.0**53).all())
    if not kept:
        raise BadInput(f"inputs.{port.source} holds a number that is no {port.datatype}")
    return cast


def _within_bf16(array: Array) -> bool:
    halves = np.frombuffer(raw_of(Tensor("", "BF16", array)), "<u2")
    return bool(((halves & 0x7F80) != 0x7F80).all())


def _fit(port: Port, array: Array) -> Array:
    """In the shape of the input: as it is nested, else value after value where only one size can be meant."""
    wanted = port.shape
    alike = len(wanted) == array.ndim and all(
        size in (None, found) for size, found in zip(wanted, array.shape, strict=True)
    )
    if array.size and alike:
        return array
    fixed = 1
    for size in wanted:
        fixed *= size or 1
    free = wanted.count(None)
    if array.size and free < 2 and (array.size % fixed == 0 if free else array.size == fixed):
        return array.reshape([-1 if size is None else size for size in wanted])
    if free > 1:
        told = f"nested lists of shape {shown(wanted)}"
    else:
        told = f"a multiple of {fixed}" if free else str(fixed)
    raise BadInput(f"inputs.{port.source} has {array.size} values; give {told}")


def shown(shape: Sequence[int | None]) -> str:
    """A shape as the protocol writes it: -1 for any size."""
    return str([-1 if size is None else size for size in shape])


def _names(kinds: set[type]) -> str:
    return ", ".join(sorted(kind.__name__ for kind in kinds))


def _unfolded(port: Port, value: Any) -> tuple[list[int], list[Any]]:
    """The shape of nested lists, and their elements."""
    shape: list[int] = []
    flat = [value]
    while flat and all(isinstance(part, list | tuple) for part in flat):
        if len({len(part) for part in flat}) > 1 or len(shape) >= _DEEPEST:
            raise BadInput(f"inputs.{port.source} is ragged: its rows differ in length")
        shape.append(len(flat[0]))
        flat = [element for part in flat for element in part]
    return shape, flat


def _outline(value: Any) -> Hashable:
    """The shape, as far as it can be told cheaply."""
    if isinstance(value, bytes):
        return len(value)
    sizes: list[int] = []
    while isinstance(value, list) and len(sizes) < _DEEPEST:
        sizes.append(len(value))
        value = value[0] if value else None
    return tuple(sizes)
