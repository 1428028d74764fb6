"""Outputs that may be large: written in pieces, and counted until the last one is."""

from __future__ import annotations

from collections.abc import Callable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

PIECE_BYTES = 64 * 1024


class Download(Response):
    """A body of many bytes; the reader's pace is kept. `over` is called once it is written, or given up."""

    def __init__(
        self, data: bytes, media_type: str, headers: dict[str, str], over: Callable[[], None]
    ) -> None:
        super().__init__(None, 200, headers, media_type)
        self.headers["content-length"] = str(len(data))
        self._data, self._over = memoryview(data), over

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send(
                {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            )
            for at in range(0, len(self._data), PIECE_BYTES):
                piece = bytes(self._data[at : at + PIECE_BYTES])
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._over()
