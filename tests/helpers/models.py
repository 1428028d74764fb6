"""Small models for the tests of repositories: an ONNX file written by hand, and versions of any bytes."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workers.models.adding import add
from workers.models.chosen import Source
from workers.models.manifest import CARD, MANIFEST, File, Manifest, digest_of, encode
from workers.models.repository import Repository

CAPABILITY = "test/scale"
_FLOAT = 1


def _field(number: int, value: int | bytes) -> bytes:
    """One field of a protocol buffer: a whole number, or bytes."""
    if isinstance(value, int):
        return _number(number << 3) + _number(value)
    return _number(number << 3 | 2) + _number(len(value)) + value


def _number(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes((value & 127 | 128,))
        value >>= 7
    return out + bytes((value,))


def scaler(factor: float, size: int = 4) -> bytes:
    """An ONNX model: output `y` is input `x`, of `size` numbers a row, times `factor`."""

    def value(name: bytes) -> bytes:
        dims = _field(1, _field(2, b"rows")) + _field(1, _field(1, size))
        tensor = _field(1, _FLOAT) + _field(2, dims)
        return _field(1, name) + _field(2, _field(1, tensor))

    constant = _field(1, 1) + _field(2, _FLOAT) + _field(8, b"k") + _field(9, struct.pack("<f", factor))
    node = _field(1, b"x") + _field(1, b"k") + _field(2, b"y") + _field(4, b"Mul")
    graph = _field(1, node) + _field(2, b"g") + _field(5, constant)
    graph += _field(11, value(b"x")) + _field(12, value(b"y"))
    return _field(1, 8) + _field(7, graph) + _field(8, _field(1, b"") + _field(2, 13))


def card(name: str = "scale", **more: Any) -> dict[str, Any]:
    """The card of a scaler."""
    return {
        "name": name,
        "capability": CAPABILITY,
        "side": "local",
        "model_type": "onnx",
        "licence": "Apache-2.0",
        **more,
    }


def folder_of(place: Path, factor: float, **more: Any) -> Path:
    """A model folder as a user has it, at `place`."""
    place.mkdir(parents=True, exist_ok=True)
    (place / "model.onnx").write_bytes(scaler(factor))
    (place / CARD).write_text(json.dumps(card(**more)))
    return place


def placed(
    repository: Repository, scratch: Path, version: str, files: Mapping[str, bytes] | None = None
) -> Manifest:
    """A version of the model `m` with any bytes for its files: nobody loads it."""
    files = {
        CARD: json.dumps(card("m", version=version)).encode(),
        "model.onnx": b"x" * 5000,
        **(files or {}),
    }
    known = {path: File(digest_of(content), len(content)) for path, content in files.items()}
    manifest = Manifest(name="m", version=version, files=known)
    paths = {}
    for path, content in {**files, MANIFEST: encode(manifest)}.items():
        paths[path] = scratch / version / path
        paths[path].parent.mkdir(parents=True, exist_ok=True)
        paths[path].write_bytes(content)
    return repository.place("m", version, paths)


def three_scales(place: Path) -> Path:
    """A repository below `place` with the model `scale`: versions 1 to 3 multiply by that; none is active."""
    repository = Source(str(place / "repo"), place / "cache").repository
    for version in ("1", "2", "3"):
        add(repository, folder_of(place / version, float(version), version=version), {"name": "scale"})
    return place / "repo"
