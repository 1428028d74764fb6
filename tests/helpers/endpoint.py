"""A real HTTP server that answers as it is told, and remembers what it was asked."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Asked:
    """One call: path with query, headers by lower-case name, body."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Reply:
    """`after_s` before it, `trickle_s` between its bytes; `cut` closes the connection instead."""

    status: int = 200
    body: bytes = b'{"caption": "a crayfish"}'
    headers: dict[str, str] = field(default_factory=dict)
    after_s: float = 0.0
    trickle_s: float = 0.0
    cut: bool = False


class Endpoint:
    """`reply` is asked for each call, of which `calls` keeps all. `certificate` and its key make it https."""

    def __init__(self, certificate: tuple[Path, Path] | None = None) -> None:
        self.calls: list[Asked] = []
        self.reply: Callable[[Asked], Reply] = lambda _: Reply()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"http{'s' if certificate else ''}://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


def endpoint(certificate: tuple[Path, Path] | None = None) -> Iterator[Endpoint]:
    """A started server, stopped at the end; fixtures yield from it."""
    server = Endpoint(certificate)
    server.start()
    try:
        yield server
    finally:
        server.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """A connection that was cut is what the test wants."""


def _handler(owner: Endpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            self._answer(body)

        def do_GET(self) -> None:
            self._answer(b"")

        def _answer(self, body: bytes) -> None:
            asked = Asked(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            owner.calls.append(asked)
            reply = owner.reply(asked)
            time.sleep(reply.after_s)
            if reply.cut:
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            try:
                self._write(reply)
            except OSError:
                self.close_connection = True  # the caller has gone: its deadline, or its limit

        def _write(self, reply: Reply) -> None:
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(reply.body)))
            self.end_headers()
            if not reply.trickle_s:
                self.wfile.write(reply.body)
                return
            for byte in reply.body:
                self.wfile.write(bytes((byte,)))
                time.sleep(reply.trickle_s)

        def log_message(self, *_: Any) -> None:
            """Silent."""

    return Handler
