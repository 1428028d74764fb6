"""Spans to a collector: what arrives, what is dropped, and that nobody waits for it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import REGISTRY

from edgeway.errors import UsageError
from edgeway.otlp import Exporter, endpoint_of, headers_of, sender
from edgeway.roles.tracing import tracer_for
from streams.settings import Settings
from streams.tracing import Context, Event, Span
from tests.helpers.otlp import Collector

SPAN = Span(
    "a" * 32,
    0xB,
    0xC,
    "request",
    1000.5,
    1002.25,
    {"edgeway.status": "error", "edgeway.cost": 0.5, "edgeway.rows": 3, "edgeway.cached": True},
    kind="server",
    error="no_placement",
    events=(Event("escalation", 1001, {"edgeway.side": "cloud"}),),
    links=(Context("d" * 32, 0xE, True),),
)


def counted(outcome: str) -> float:
    return REGISTRY.get_sample_value("edgeway_spans_total", {"outcome": outcome}) or 0.0


def test_a_span_arrives_as_it_was_told() -> None:
    with Collector() as collector:
        send = sender(collector.url, {"x-key": "k"}, {"service.name": "edgeway-test"})
        assert send([SPAN, SPAN._replace(id=0xF, parent=None, error=None)])
        told, root = collector.spans()
        assert collector.paths == ["/v1/traces"]
        assert collector.heads[0]["x-key"] == "k"
    assert (told.service, told.trace, told.name) == ("edgeway-test", "a" * 32, "request")
    assert (told.id, told.parent, root.parent) == (f"{0xB:016x}", f"{0xC:016x}", "")
    assert (told.start, told.end) == (1_000_500_000, 1_002_250_000)
    assert told.attributes == dict(SPAN.attributes)
    assert (told.error, root.error, told.events) == ("no_placement", "", ("escalation",))
    assert told.links == (f"{0xE:016x}",)


def test_a_stop_sends_what_is_left() -> None:
    with Collector() as collector:
        before = counted("exported")
        exporter = Exporter(sender(collector.url, {}, {"service.name": "edgeway-test"}))
        exporter.start()
        exporter.take([SPAN] * 700)
        exporter.stop(5)
        assert len(collector.spans()) == 700
        assert counted("exported") == before + 700


def test_a_collector_that_hangs_holds_nobody_and_costs_bounded_memory() -> None:
    hang = threading.Event()

    def send(spans: Sequence[Span]) -> bool:
        hang.wait(10)
        return True

    before = counted("dropped")
    exporter = Exporter(send, most=1000)
    exporter.start()
    exporter.take([SPAN])
    began, spent = time.monotonic(), time.process_time()
    for _ in range(500):
        exporter.take([SPAN] * 100)
    assert time.process_time() - spent < 1.0
    assert time.monotonic() - began < 5.0
    assert counted("dropped") - before > 45_000
    exporter.stop(0.1)
    assert counted("dropped") - before >= 49_000, "what was left is counted, too"
    hang.set()


def test_a_collector_that_refuses_is_told_once_and_again_when_it_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answers = iter([True, False, False, True])
    sent = threading.Semaphore(0)

    def send(spans: Sequence[Span]) -> bool:
        sent.release()
        return next(answers)

    before = counted("failed")
    exporter = Exporter(send)
    exporter.start()
    with caplog.at_level("INFO", "edgeway.otlp"):
        for _ in range(4):
            exporter.take([SPAN])
            assert sent.acquire(timeout=5)
        exporter.stop(5)
    assert counted("failed") - before == 2
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def test_an_answer_of_no_success_is_a_failure() -> None:
    with Collector(status=400) as collector:
        assert not sender(collector.url, {}, {"service.name": "edgeway-test"})([SPAN])


@pytest.mark.parametrize(
    ("given", "posted"),
    [
        ("http://c:4318", "http://c:4318/v1/traces"),
        ("http://c:4318/", "http://c:4318/v1/traces"),
        ("https://c/otlp/v1/traces", "https://c/otlp/v1/traces"),
    ],
)
def test_the_usual_path_is_added_where_there_is_none(given: str, posted: str) -> None:
    assert endpoint_of(given) == posted


def test_headers_stand_one_a_line(tmp_path: Path) -> None:
    path = tmp_path / "headers"
    path.write_text("# ours\n\nAuthorization: Bearer a:b\nX-Scope:  me \n", encoding="utf-8")
    assert headers_of(path) == {"authorization": "Bearer a:b", "x-scope": "me"}
    assert headers_of(None) == {}


@pytest.mark.parametrize("text", ["secret", "secret:", ": secret"])
def test_a_line_that_is_no_header_is_named_and_not_quoted(tmp_path: Path, text: str) -> None:
    path = tmp_path / "headers"
    path.write_text(f"a: b\n{text}\n", encoding="utf-8")
    with pytest.raises(UsageError, match="line 2: write NAME: VALUE") as caught:
        headers_of(path)
    assert "secret" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        headers_of(tmp_path / "none")


def test_without_the_extra_the_mend_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http", None)
    with pytest.raises(UsageError, match=r"install edgeway\[otel\]"):
        sender("http://c:4318", {}, {})


def test_a_process_has_one_tracer_and_none_without_an_endpoint() -> None:
    def process(**fields: Any) -> Any:
        return SimpleNamespace(
            settings=Settings(**fields), shared={}, name="up", slot=None, before=[], after=[]
        )

    assert tracer_for(process()) is None
    both = process(otlp="http://127.0.0.1:9")
    assert tracer_for(both) is tracer_for(both) is not None
    assert len(both.before) == 1
