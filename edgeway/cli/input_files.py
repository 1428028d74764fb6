"""Files as inputs of one request: in the record where they are small, else by claim check."""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeway.errors import UsageError

if TYPE_CHECKING:
    from schemas.messages import Request
    from streams.settings import Settings

ROOM = 16 * 1024
"""Bytes of a record that are left for all else that a request says."""


def with_files(request: Request, pairs: Sequence[str], settings: Settings) -> Request:
    """`request` with the files of NAME=PATH among its inputs. Their content type is that of their suffix: a
    text, JSON and msgpack come as values, all others as bytes.

    Raises:
        UsageError: a file that cannot be read, is not what its suffix says, or is too large.
    """
    import msgspec

    read = {name: (path, _read(path)) for name, path in map(_pair, pairs)}
    inputs = asyncio.run(_inputs(read, settings, request.tenant))
    return msgspec.structs.replace(request, inputs={**request.inputs, **inputs})


async def _inputs(
    read: Mapping[str, tuple[Path, bytes]], settings: Settings, tenant: str | None
) -> dict[str, Any]:
    from edgeway.roles.objects import opened
    from schemas.claims import INLINE_BYTES, as_value
    from schemas.limits import MAX_RECORD_BYTES
    from streams.claims import ClaimError
    from streams.claims.values import value_of

    objects = opened(settings)
    left = MAX_RECORD_BYTES - ROOM
    inputs: dict[str, Any] = {}
    try:
        for name, (path, data) in read.items():
            content_type = mimetypes.guess_type(path.name)[0]
            value = value_of(data, content_type)
            if len(data) > INLINE_BYTES and objects.local is not None:
                claim = await objects.local.put(data, content_type=content_type, tenant=tenant)
                inputs[name] = as_value(claim)
                continue
            left -= len(data)
            if left < 0:
                raise UsageError(
                    f"--input-file {name}={path}: a request takes {MAX_RECORD_BYTES - ROOM} bytes of files "
                    "in all; give --objects URL, the object store of the roles, for larger ones"
                )
            inputs[name] = value
    except ClaimError as error:
        raise UsageError(f"--input-file: {error}") from error
    finally:
        await objects.close()
    return inputs


def _pair(pair: str) -> tuple[str, Path]:
    name, mark, path = pair.partition("=")
    if not name or not mark or not path:
        raise UsageError(f"--input-file {pair!r} is no NAME=PATH")
    return name, Path(path).expanduser()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"--input-file: {path}: {error.strerror or error}") from error
