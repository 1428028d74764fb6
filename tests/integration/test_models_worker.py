"""A worker with a model repository on a real Kafka: switched under load, refused, killed while it pulls."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import shutil
import time
from pathlib import Path

import pytest

from tests.helpers import scaling
from tests.helpers.models import folder_of
from tests.helpers.roles import Role, fetch
from workers.models.adding import add
from workers.models.repository import Repository

pytestmark = pytest.mark.integration
log = logging.getLogger(__name__)

TAKEN_UP_MS = 5000
"""From the activation to the first answer of the new version, on a busy machine; 0.1 s of it are the poll."""


async def until(what: str, condition: object, within_s: float = 30.0) -> None:
    end = time.monotonic() + within_s
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, f"{what} did not come within {within_s:.0f} s"
        await asyncio.sleep(0.02)


def outcome(role: Role, name: str) -> float:
    head = f'edgeway_model_switch_total{{outcome="{name}"}} '
    lines = fetch(role.port, "/metrics")[1].splitlines()
    return next((float(line.removeprefix(head)) for line in lines if line.startswith(head)), 0.0)


async def switched(bootstrap: str, place: Path, name: str, times: int, at_once: int = 1) -> list[float]:
    """Ms from each of `times` activations under load to the first answer of the new version."""
    repository = scaling.filled(place, 4)
    scaling.topics(place, bootstrap)
    role = scaling.worker(place, bootstrap).start()
    activated: list[tuple[str, float]] = []
    try:
        role.wait_ready()
        async with scaling.Load(bootstrap, name, at_once) as load:
            await until("the load", lambda: load.sent > 50)
            versions = itertools.cycle("2341")
            for version in itertools.islice(versions, times):
                activated.append((version, time.time() * 1000))
                done = await asyncio.to_thread(repository.activate, "scale", version)
                assert done.version == version
                wanted = float(len(activated))
                await until(f"switch {wanted:g}", lambda wanted=wanted: outcome(role, "switched") == wanted)
                await asyncio.sleep(0.1)
        found = await scaling.answers(bootstrap, name, load.sent)
        assert outcome(role, "refused") == 0.0
    finally:
        role.kill()
    # No answer of an old version comes after the first one of the new: else a version would stand here twice.
    assert scaling.switches(found) == ["1", *(version for version, _ in activated)]
    firsts = [next(group).at for _, group in itertools.groupby(found, key=lambda seen: seen.version)][1:]
    took_ms = [first - at for first, (_, at) in zip(firsts, activated, strict=True)]
    middle, most = sorted(took_ms)[len(took_ms) // 2], max(took_ms)
    told = "%d switches under a load of %d requests: first answers after %.0f ms, %.0f at most"
    log.warning(told, times, load.sent, middle, most)
    return took_ms


async def test_a_model_is_switched_under_load(bootstrap: str, tmp_path: Path) -> None:
    took_ms = await switched(bootstrap, tmp_path, "five", 5)
    assert max(took_ms) < TAKEN_UP_MS


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_model_is_switched_fifty_times_under_load(bootstrap: str, tmp_path: Path) -> None:
    took_ms = await switched(bootstrap, tmp_path, "fifty", 50, at_once=8)
    assert max(took_ms) < TAKEN_UP_MS


async def test_what_cannot_be_served_leaves_the_old_version(bootstrap: str, tmp_path: Path) -> None:
    """Activated by hand: half copied, with another model than was added, and one that is not there."""
    repository = scaling.filled(tmp_path, 3)
    scaling.topics(tmp_path, bootstrap)
    repo = tmp_path / "repo" / "scale"
    (repo / "2" / "model.onnx").write_bytes(b"half of it")
    shutil.copy(repo / "1" / "model.onnx", repo / "3" / "model.onnx")
    role = scaling.worker(tmp_path, bootstrap).start()
    try:
        role.wait_ready()
        async with scaling.Load(bootstrap, "spoilt") as load:
            for count, version in enumerate(("2", "3", "4"), 1):
                active = {"version": version, "previous": ["1"], "since_ms": count}
                (repo / "active.json").write_text(json.dumps(active))
                await until(version, lambda count=count: outcome(role, "refused") == count)
            await asyncio.sleep(0.3)
        found = await scaling.answers(bootstrap, "spoilt", load.sent)
        assert scaling.switches(found) == ["1"]
        for told in ("model.onnx has 10 bytes", "model.onnx is not what was added", "no version 4"):
            assert role.said.count(told) == 1, role.said
        assert role.said.count("1 stays") == 3
        repository.activate("scale", "1")
        await until("the end of it", lambda: outcome(role, "switched") == 0.0)
    finally:
        role.kill()


async def test_a_worker_that_was_killed_while_it_pulled_goes_on_there(bootstrap: str, tmp_path: Path) -> None:
    repository = scaling.filled(tmp_path, 1)
    scaling.topics(tmp_path, bootstrap)
    grow(repository, tmp_path)
    role = scaling.worker(tmp_path, bootstrap).start()
    try:
        part = await asyncio.to_thread(first_bytes, tmp_path / "cache")
        role.kill()
        pulled = part.stat()
        assert 0 < pulled.st_size < SIZE
        assert not list((tmp_path / "cache").glob("*/scale/2"))
        role.start().wait_ready()
        (whole,) = (tmp_path / "cache").glob("*/scale/2/weights.bin")
        # The same file, to which the rest was appended.
        assert (whole.stat().st_ino, whole.stat().st_size) == (pulled.st_ino, SIZE)
        async with scaling.Load(bootstrap, "killed") as load:
            await until("the load", lambda: load.sent > 20)
        assert scaling.switches(await scaling.answers(bootstrap, "killed", load.sent)) == ["2"]
    finally:
        role.kill()


SIZE = 96 * 1024 * 1024


def grow(repository: Repository, place: Path) -> None:
    """Version 2, active, with so much beside the model that it takes a while to pull."""
    folder = folder_of(place / "large", 2.0, version="2")
    with (folder / "weights.bin").open("wb") as file:
        block = os.urandom(1024 * 1024)
        for _ in range(SIZE // len(block)):
            file.write(block)
    add(repository, folder, {"name": "scale"})
    shutil.rmtree(folder)
    repository.activate("scale", "2")


def first_bytes(cache: Path) -> Path:
    """The large file, once something of it is there."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for found in cache.glob("*/scale/.pulling-2/weights.bin"):
            if found.stat().st_size:
                return found
    raise AssertionError("nothing was pulled within 60 s")
