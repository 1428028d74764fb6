"""A proxy before a Redis that can be made slow."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from urllib.parse import urlsplit


class SlowProxy:
    """Passes bytes on, those of the server `delay_s` late; on a port of its own until the block ends."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname or "127.0.0.1", parts.port or 6379)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self.delay_s = 0.0
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}{parts.path}"

    def __enter__(self) -> SlowProxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):  # the other end may have closed it already
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the listener is closed: the block has ended
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                self._sockets += [client, server]
                threading.Thread(target=self._pass, args=(client, server, False), daemon=True).start()
                threading.Thread(target=self._pass, args=(server, client, True), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, late: bool) -> None:
        with contextlib.suppress(OSError):  # one end has gone, and the other goes with it
            while data := source.recv(65536):
                if late and self.delay_s:
                    time.sleep(self.delay_s)
                sink.sendall(data)
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
