"""The running Edgeways that the tests of this folder share: started once for all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.helpers.caller import Caller
from tests.helpers.kafka import serve as serve_kafka
from tests.helpers.spine import KINDS, Spine, serve_pieces, serve_up

EMBEDDED_WILL_DO = (
    "test_bad_records",
    "test_commands",
    "test_dead_letters",
    "test_explain",
    "test_privacy",
    "test_refusals",
    "test_starting",
)
"""What these prove does not come from the broker, which is of one version in the jars and in the image. In
containers they run with the slow tests; `test_answers`, `test_ids`, `test_replies`, `test_changes` and
`test_exchange` run there each time.
"""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        contained = item.path.parent == here and item.get_closest_marker("containers")
        if contained and item.path.stem in EMBEDDED_WILL_DO:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="package", params=KINDS)
def spine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spine]:
    """All roles in one process, with Redis; on Kafka embedded and in a container by turns."""
    embedded = request.param == "embedded"
    kafka = request.getfixturevalue("embedded_kafka" if embedded else "_container_kafka")
    yield from serve_up(kafka, "wheel" if embedded else "container", tmp_path_factory.mktemp("spine"))


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spine]:
    """Each role a process of its own, on three brokers, without Redis."""
    clusters = serve_kafka("embedded3")
    try:
        yield from serve_pieces(next(clusters), tmp_path_factory.mktemp("pieces"))
    finally:
        next(clusters, None)


@pytest.fixture
async def caller(spine: Spine) -> AsyncIterator[Caller]:
    async with Caller(spine.kafka) as caller:
        yield caller
