"""Spans to an OTLP/HTTP endpoint, from a thread of their own: whatever the endpoint does, no role waits."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from edgeway.errors import UsageError
from streams import metrics
from streams.tracing import Span

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

log = logging.getLogger(__name__)

MOST_SPANS = 8192
MOST_AT_ONCE = 512
GATHER_S = 0.25
CALL_S = 5.0
"""One export may take so long, with its retries."""
Send = Callable[[Sequence[Span]], bool]
"""Sends spans; whether they arrived. Blocks, raises nothing."""


class Exporter:
    """A Tracer with a bounded queue before `send`; what finds no room is dropped, and counted in
    `edgeway_spans_total`."""

    def __init__(self, send: Send, most: int = MOST_SPANS) -> None:
        self._send = send
        self._most = most
        self._queue: deque[Span] = deque()
        self._wake, self._stopping = threading.Event(), threading.Event()
        self._arrives = True
        self._thread = threading.Thread(target=self._run, name="spans", daemon=True)
        self._sent, self._failed, self._dropped = (
            metrics.SPANS.labels(outcome) for outcome in ("exported", "failed", "dropped")
        )

    def start(self) -> None:
        self._thread.start()

    def take(self, spans: Sequence[Span]) -> None:
        room = self._most - len(self._queue)
        if room < len(spans):
            self._dropped.inc(len(spans) - max(0, room))
            spans = spans[: max(0, room)]
        self._queue.extend(spans)
        self._wake.set()

    def stop(self, within_s: float) -> None:
        """Send what is left, as far as that goes within the time. Blocks."""
        self._stopping.set()
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(within_s)
        self._dropped.inc(len(self._queue))
        self._queue.clear()

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            self._stopping.wait(GATHER_S)  # so that many spans make one call
            while batch := self._next():
                self._note(self._send(batch), len(batch))
            if self._stopping.is_set():
                return

    def _next(self) -> list[Span]:
        batch: list[Span] = []
        while self._queue and len(batch) < MOST_AT_ONCE:
            batch.append(self._queue.popleft())
        return batch

    def _note(self, arrived: bool, count: int) -> None:
        (self._sent if arrived else self._failed).inc(count)
        if arrived != self._arrives:
            self._arrives = arrived
            if arrived:
                log.info("spans reach their endpoint again")
            else:
                log.warning("spans do not reach their endpoint; they are dropped and counted until they do")


def sender(url: str, headers: Mapping[str, str], resource: Mapping[str, str]) -> Send:
    """Sends to `url` (its base, or that of its traces) as the service that `resource` names.

    Raises:
        UsageError: the extra `otel` is not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http import Compression
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace.export import SpanExportResult
    except ModuleNotFoundError as error:
        text = f"otlp needs {error.name}: install edgeway[otel], or leave the setting otlp out"
        raise UsageError(text) from error
    # It writes a line for each attempt; we write one for each change.
    logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL)
    logging.getLogger("opentelemetry.exporter.otlp.proto.http.trace_exporter").setLevel(logging.CRITICAL)
    exporter = OTLPSpanExporter(
        endpoint_of(url), headers=dict(headers), timeout=CALL_S, compression=Compression.Gzip
    )
    made = Resource(dict(resource))

    def send(spans: Sequence[Span]) -> bool:
        try:
            return exporter.export([readable(span, made) for span in spans]) is SpanExportResult.SUCCESS
        except Exception as error:  # noqa: BLE001 - whatever the library raises must not end the thread
            log.debug("spans were not exported: %s", type(error).__name__)
            return False

    return send


def readable(span: Span, resource: Any) -> ReadableSpan:
    """A span as OpenTelemetry's exporter takes it."""
    from opentelemetry.sdk.trace import Event, ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

    def context(trace: str, span_id: int) -> SpanContext:
        return SpanContext(int(trace, 16), span_id, is_remote=False, trace_flags=TraceFlags(1))

    return ReadableSpan(
        name=span.name,
        context=context(span.trace, span.id),
        parent=None if span.parent is None else context(span.trace, span.parent),
        resource=resource,
        attributes=span.attributes,
        events=[Event(event.name, event.attributes, _ns(event.at)) for event in span.events],
        links=[Link(context(link.trace, link.span)) for link in span.links],
        kind=SpanKind[span.kind.upper()],
        status=Status(StatusCode.OK) if span.error is None else Status(StatusCode.ERROR, span.error),
        start_time=_ns(span.start),
        end_time=_ns(span.end),
        instrumentation_scope=InstrumentationScope("edgeway"),
    )


def endpoint_of(url: str) -> str:
    """Where traces are posted: the URL itself where it has a path, else its usual one."""
    parts = urlsplit(url)
    return url if parts.path.strip("/") else urlunsplit(parts._replace(path="/v1/traces"))


def headers_of(path: Path | None) -> dict[str, str]:
    """The headers that a file holds, one `NAME: VALUE` a line; empty lines and those after # are left out.

    Raises:
        UsageError: it cannot be read, or a line is no header. The text quotes nothing of it.
    """
    if path is None:
        return {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"otlp_headers_file {path} cannot be read: {type(error).__name__}") from error
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        name, separator, value = line.partition(":")
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not separator or not name.strip() or not value.strip():
            raise UsageError(f"otlp_headers_file {path}, line {number}: write NAME: VALUE")
        found[name.strip().lower()] = value.strip()
    return found


def _ns(ms: float) -> int:
    return int(ms * 1_000_000)
