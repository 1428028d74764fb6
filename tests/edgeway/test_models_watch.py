"""A served model follows its repository; whatever goes wrong leaves the version of before."""

from __future__ import annotations

import asyncio
import logging
import shutil
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY

from edgeway.models_serving import follow_models
from edgeway.models_watch import RETRY_S, ServedModel
from streams.settings import Settings
from tests.helpers.models import folder_of, scaler, three_scales
from workers.errors import CheckFailed
from workers.models import ready
from workers.models.adding import add
from workers.models.check import Check
from workers.models.chosen import Source
from workers.worker import Worker


class Steady:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time

    def now(self) -> int:
        return int(self.time * 1000)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return three_scales(tmp_path_factory.mktemp("filled"))


@pytest.fixture
def source(filled: Path, tmp_path: Path) -> Source:
    shutil.copytree(filled, tmp_path / "repo")
    found = Source(str(tmp_path / "repo"), tmp_path / "cache")
    found.repository.activate("scale", "1")
    return found


@pytest.fixture
async def served(source: Source) -> AsyncIterator[tuple[ServedModel, Worker, Steady]]:
    clock = Steady()
    (pending,) = source.offered()
    worker = Worker([pending], name="w", clock=clock)
    await worker.start()
    model = ServedModel(source, pending, worker, clock)
    await model.start()
    yield model, worker, clock
    await worker.stop(1.0)


def version(worker: Worker) -> str:
    (offer,) = worker.offers()
    return offer.card.version


def count(outcome: str) -> float:
    return REGISTRY.get_sample_value("edgeway_model_switch_total", {"outcome": outcome}) or 0.0


async def test_another_active_version_is_taken_up(
    source: Source, served: tuple[ServedModel, Worker, Steady]
) -> None:
    model, worker, _ = served
    assert version(worker) == "1"
    before = count("switched")
    await model.look()
    assert (version(worker), count("switched")) == ("1", before)
    for wanted in ("2", "3"):
        source.repository.activate("scale", wanted)
        await model.look()
        assert (model.version, version(worker)) == (wanted, wanted)
    source.repository.rollback("scale")
    await model.look()
    assert version(worker) == "2"
    assert count("switched") == before + 3
    assert source.cache.remembered("scale") == "2"


async def test_a_damaged_version_is_refused_once_and_tried_again_later(
    source: Source,
    served: tuple[ServedModel, Worker, Steady],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    model, worker, clock = served
    whole = tmp_path / "repo" / "scale" / "2" / "model.onnx"
    whole.write_bytes(scaler(2.0)[:50])
    source.repository.activate("scale", "2")
    before = count("refused")
    for _ in range(3):
        await model.look()
        clock.time += 1
    assert version(worker) == "1"
    assert count("refused") == before + 1
    told = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(told) == 1
    assert "scale 2 is refused, 1 stays" in told[0].getMessage()
    assert "model.onnx has 50 bytes" in told[0].getMessage()
    whole.write_bytes(scaler(2.0))
    clock.time += RETRY_S
    await model.look()
    assert version(worker) == "2"


async def test_one_that_answers_otherwise_is_refused_until_it_is_activated_again(
    source: Source, served: tuple[ServedModel, Worker, Steady], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, worker, clock = served
    asked: list[str] = []

    def refuse(name: str, active: Any) -> None:
        asked.append(active.version)
        raise CheckFailed("answers[0].output: otherwise")

    with monkeypatch.context() as patch:
        patch.setattr(source, "next", refuse)
        source.repository.activate("scale", "2")
        for _ in range(3):
            await model.look()
            clock.time += 10_000
        assert asked == ["2"]
        source.repository.activate("scale", "2")
        await model.look()
        assert asked == ["2", "2"]
    assert version(worker) == "1"
    source.repository.activate("scale", "3")
    await model.look()
    assert version(worker) == "3"


async def test_a_model_that_hangs_is_refused_while_the_loop_goes_on(
    source: Source, served: tuple[ServedModel, Worker, Steady], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, worker, _ = served
    hangs = threading.Event()
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    monkeypatch.setattr(ready, "check_of", lambda folder: Check(deadline_s=0.3))
    monkeypatch.setattr(ready, "run", lambda backend, check: hangs.wait(30))
    source.repository.activate("scale", "2")
    ticking = asyncio.create_task(tick())
    await model.look()
    ticking.cancel()
    hangs.set()
    assert version(worker) == "1"
    assert ticks > 5
    await model.look()
    assert version(worker) == "1"


async def test_a_repository_that_is_away_is_told_once(
    source: Source,
    served: tuple[ServedModel, Worker, Steady],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    model, worker, _ = served
    active = tmp_path / "repo" / "scale" / "active.json"
    kept = active.read_bytes()
    active.write_bytes(b"{")
    for _ in range(2):
        await model.look()
    active.unlink()
    for _ in range(2):
        await model.look()
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(told) == 2
    assert "1 stays" in told[0]
    assert "no version of scale is active any more; 1 stays" in told[1]
    active.write_bytes(kept)
    caplog.set_level(logging.INFO)
    await model.look()
    assert "can be read again" in caplog.text
    assert version(worker) == "1"


async def test_a_version_of_another_capability_is_refused(
    source: Source, served: tuple[ServedModel, Worker, Steady], tmp_path: Path
) -> None:
    model, worker, _ = served
    other = folder_of(tmp_path / "other", 9.0, version="9")
    add(source.repository, other, {"name": "scale", "capability": "test/else"})
    source.repository.activate("scale", "9")
    await model.look()
    assert version(worker) == "1"


async def test_a_start_on_an_older_version_goes_on_with_the_active_one(
    source: Source, tmp_path: Path
) -> None:
    source.repository.activate("scale", "2")
    whole = tmp_path / "repo" / "scale" / "2" / "model.onnx"
    whole.write_bytes(b"half")
    (pending,) = source.offered()
    clock = Steady()
    worker = Worker([pending], name="w", clock=clock)
    await worker.start()
    model = ServedModel(source, pending, worker, clock)
    await model.start()
    await model.look()
    assert version(worker) == "1"
    whole.write_bytes(scaler(2.0))
    clock.time += RETRY_S
    await model.look()
    assert version(worker) == "2"
    await worker.stop(1.0)


async def test_new_models_are_told_and_zero_polls_never(
    source: Source, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    looks: dict[str, Any] = {}

    def every(seconds: float, name: str, work: Any) -> None:
        looks[name] = (seconds, work)

    settings = Settings(models=str(tmp_path / "repo"), models_cache=tmp_path / "cache", models_poll_s=5.0)
    pending = source.offered()
    worker = Worker(pending, name="w", clock=Steady())
    await worker.start()
    await follow_models(settings, pending, [worker], every)()
    assert version(worker) == "1"
    assert set(looks) == {"model scale", "new models"}
    add(source.repository, folder_of(tmp_path / "o", 1.0), {"name": "other", "capability": "test/other"})
    source.repository.activate("other", "1")
    caplog.set_level(logging.INFO)
    for _ in range(2):
        await looks["new models"][1]()
    assert caplog.text.count("model other became active") == 1
    await worker.stop(1.0)
    looks.clear()
    never = Settings(models=str(tmp_path / "repo"), models_cache=tmp_path / "cache", models_poll_s=0.0)
    follow_models(never, pending, [worker], every)
    assert looks == {}
    shutil.rmtree(tmp_path / "cache")
