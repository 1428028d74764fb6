"""The HTTP backend and the contracts of backends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from schemas.cards import Card
from tests.helpers.faulty_server import FAULTS, Asked, FaultyServer, faulty
from tests.workers.backends.contract import SECRET, FaultContract, Faulted, RemoteContract, Subject
from workers.backends import Row
from workers.backends.http import HttpBackend, build

CARD = Card(capability="math/echo", side="cloud", version="1", model="m", model_type="http", max_cost=0.5)


def echo(asked: Asked) -> object:
    return {"output": {"n": asked.json()["n"]}, "cost": 0.1}


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with faulty(echo) as started:
        yield started


class TestHttp(RemoteContract):
    @pytest.fixture
    def subject(self, server: FaultyServer) -> Subject:
        @contextmanager
        def silent() -> Iterator[None]:
            server.fault = lambda _: FAULTS["never answers"]
            yield

        return Subject(
            make=lambda: HttpBackend(CARD, server.url),
            good=lambda n: Row({"n": n}, {}),
            right=lambda n, output: output == {"n": n},
            bad=Row({"params": SECRET}, {"length": 1}),
            huge=Row({"n": 1, "text": "x" * 20_000_000}, {}),
            unloadable=lambda: build(CARD, {"url": server.url, "headers_env": {"x-key": "NOT_SET_AT_ALL"}}),
            silent=silent,
        )


class TestHttpFaults(FaultContract):
    @pytest.fixture
    def faulted(self, server: FaultyServer) -> Faulted:
        return Faulted(
            server,
            make=lambda: HttpBackend(CARD, server.url),
            good=lambda n: Row({"n": n}, {}),
            right=lambda n, output: output == {"n": n},
            number_of=lambda asked: asked.json()["n"],
        )
