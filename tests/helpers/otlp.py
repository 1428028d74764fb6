"""A stand-in for an OpenTelemetry collector: takes OTLP over HTTP, and keeps what it was told."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


class Told(NamedTuple):
    """One span as it came."""

    service: str
    trace: str
    id: str
    parent: str
    name: str
    attributes: dict[str, Any]
    events: tuple[str, ...]
    links: tuple[str, ...]
    error: str
    start: int
    end: int


class Collector:
    """Listens while entered. `status` is what it answers; `raw` all bodies, `heads` their headers."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.raw: list[bytes] = []
        self.heads: list[dict[str, str]] = []
        self.paths: list[str] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                if collector.status == 200:
                    collector.raw.append(body)
                collector.heads.append({name.lower(): value for name, value in self.headers.items()})
                collector.paths.append(self.path)
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(collector.status)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def spans(self) -> list[Told]:
        """All that was told so far."""
        return [span for body in list(self.raw) for span in _read(body)]

    def await_spans(self, enough: Callable[[list[Told]], bool], within_s: float = 20.0) -> list[Told]:
        """The spans once there are `enough`; whatever there is after the time."""
        until = time.monotonic() + within_s
        while not enough(found := self.spans()) and time.monotonic() < until:
            time.sleep(0.05)
        return found


def _read(body: bytes) -> list[Told]:
    message: Any = ExportTraceServiceRequest.FromString(body)
    found: list[Told] = []
    for resource in message.resource_spans:
        service = _attributes(resource.resource.attributes)["service.name"]
        for scope in resource.scope_spans:
            for span in scope.spans:
                told = Told(
                    service,
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    span.name,
                    _attributes(span.attributes),
                    tuple(event.name for event in span.events),
                    tuple(link.span_id.hex() for link in span.links),
                    span.status.message,
                    span.start_time_unix_nano,
                    span.end_time_unix_nano,
                )
                found.append(told)
    return found


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}
