"""How many connections the gateway's process takes, and where it says that it answers."""

from __future__ import annotations

import logging
import resource

import pytest

from edgeway.cli import main
from edgeway.roles import gateway
from streams.settings import Settings


def limited(monkeypatch: pytest.MonkeyPatch, soft: int, hard: int) -> list[tuple[int, int]]:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: asked.append(limits))
    return asked


def test_the_limit_of_files_is_raised_for_all_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = limited(monkeypatch, 1024, 1_000_000)
    found = gateway.connections_for(5000)
    assert found == 5000 + gateway.SPARE_CONNECTIONS
    assert asked == [(found + gateway.SPARE_FILES, 1_000_000)]


def test_it_is_not_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = limited(monkeypatch, 500_000, 1_000_000)
    assert gateway.connections_for(5000) == 5000 + gateway.SPARE_CONNECTIONS
    assert asked == []


def test_where_the_system_does_not_let_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked = limited(monkeypatch, 1024, 4096)
    with caplog.at_level(logging.WARNING):
        assert gateway.connections_for(5000) == 4096 - gateway.SPARE_FILES
    assert asked == [(4096, 4096)]
    assert "ulimit -n" in caplog.text
    caplog.clear()
    assert gateway.connections_for(2000) == 4096 - gateway.SPARE_FILES
    assert caplog.text == "", "only fewer are told that they are shed"


def test_without_a_port_there_is_no_gateway(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gateway", "--kafka", "127.0.0.1:1"]) == 2
    assert "--port" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),
        ("::", "http://[::1]:80"),
        ("::1", "http://[::1]:80"),
        ("gateway.example", "http://gateway.example:80"),
    ],
)
def test_where_it_answers(host: str, url: str) -> None:
    assert gateway.url_of(Settings(host=host, port=80)) == url
