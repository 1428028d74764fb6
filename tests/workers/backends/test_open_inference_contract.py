"""The Open Inference backend and the contracts of backends: a real MLServer both ways, and faults."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from schemas.cards import Card
from tests.helpers.faulty_server import FaultyServer, faulty
from tests.helpers.inference_server import numbers_of, rest_answer
from tests.helpers.servers import MLServer
from tests.workers.backends.contract import SECRET, FaultContract, Faulted, RemoteContract, Subject
from workers.backends import Row
from workers.backends.open_inference import OpenInferenceBackend, build

CARD = Card(
    capability="text/upper", side="cloud", version="1", model="m", model_type="open_inference", max_cost=0.5
)


@pytest.mark.integration
class ServerContract(RemoteContract):
    """Of a text model on a real server."""

    scheme = ""

    @pytest.fixture
    def subject(self, mlserver: MLServer) -> Subject:
        url = getattr(mlserver, self.scheme)

        @contextmanager
        def silent() -> Iterator[None]:
            mlserver.pause()
            try:
                yield
            finally:
                mlserver.resume()

        def make(**options: Any) -> OpenInferenceBackend:
            return build(CARD, {"url": url, "model": "upper", "ready_s": 1, "scalars": True, **options})

        return Subject(
            make=make,
            good=lambda n: Row({"text": f"wörd {n}"}, {}),
            right=lambda n, output: output == {"upper": f"WÖRD {n}", "length": 6},
            bad=Row({"text": [SECRET, SECRET]}, {}),
            huge=Row({"text": "x" * 20_000_000}, {}),
            unloadable=lambda: make(model="nobody"),
            silent=silent,
        )


class TestRest(ServerContract):
    scheme = "rest"


class TestGrpc(ServerContract):
    scheme = "grpc"


del ServerContract


class Loaded(OpenInferenceBackend):
    """Once it is loaded the server forgets what was asked for that: the contract counts inferences."""

    def __init__(self, server: FaultyServer) -> None:
        super().__init__(CARD, url=server.url, model="double", rows_per_call=1, ready_s=0.0)
        self._server = server

    async def load(self) -> None:
        await super().load()
        self._server.calls.clear()
        self._server.paid.clear()
        self._server.connections = 0


class TestRestFaults(FaultContract):
    @pytest.fixture
    def faulted(self) -> Iterator[Faulted]:
        with faulty(rest_answer) as server:
            yield Faulted(
                server,
                make=lambda: Loaded(server),
                good=lambda n: Row({"x": [float(n), 1.0]}, {}),
                right=lambda n, output: output == {"y": [2.0 * n, 2.0]},
                number_of=lambda asked: int(numbers_of(asked)[0]),
            )
