"""Detectors as a user writes them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from streams.privacy.finding import Finding


class Projects:
    """Finds the code names of projects."""

    name = "projects"

    def find(self, text: str, /) -> Iterator[Finding]:
        if "bluebird" in text.lower():
            yield Finding("project", "bluebird", 1.0, self.name)


class Broken:
    """Quotes what it was given when it fails."""

    name = "broken"

    def find(self, text: str, /) -> Iterator[Finding]:
        raise RuntimeError(f"cannot read {text}")


class PngComments:
    """Reads the comments (tEXt) in a PNG, as an OCR would read its pixels."""

    name = "png-comments"

    def read(self, data: bytes, /) -> str | None:
        if not data.startswith(b"\x89PNG\r\n\x1a\n"):
            return None
        at, found = 8, []
        while at + 8 <= len(data):
            size, kind = struct.unpack_from(">I4s", data, at)
            if kind == b"tEXt":
                found.append(data[at + 8 : at + 8 + size].replace(b"\0", b": ").decode("latin-1"))
            at += size + 12
        return "\n".join(found)


def png(comment: bytes = b"") -> bytes:
    """An image of one pixel, with a comment where one is given."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    parts = [chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))]
    if comment:
        parts.append(chunk(b"tEXt", b"Comment\0" + comment))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        (*parts, chunk(b"IDAT", zlib.compress(b"\0\0")), chunk(b"IEND", b""))
    )
