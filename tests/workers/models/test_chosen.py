"""Which version is served: the active one, or else one that can be."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.helpers.models import folder_of, three_scales
from workers.backends import Backend, Row
from workers.errors import Damaged, LoadError
from workers.models.adding import add
from workers.models.chosen import Progress, Source


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return three_scales(tmp_path_factory.mktemp("filled"))


@pytest.fixture
def source(filled: Path, tmp_path: Path) -> Source:
    """The model `scale`: version N multiplies by N; 1, 2 and 3, of which 2 is active, after 1."""
    shutil.copytree(filled, tmp_path / "repo")
    found = Source(str(tmp_path / "repo"), tmp_path / "cache")
    for version in ("1", "2"):
        found.repository.activate("scale", version)
    return found


def spoil(tmp_path: Path, version: str, name: str = "model.onnx") -> None:
    (tmp_path / "repo" / "scale" / version / name).write_bytes(b"half")


def served(source: Source) -> tuple[str, Backend]:
    (pending,) = source.offered()
    ready = source.first(pending)
    (answer,) = ready.backend.infer([Row({"x": [1] * 4}, {})])
    assert answer.output["y"] == [float(ready.version)] * 4
    assert ready.backend.card.version == ready.version
    assert ready.refused is not None or pending.active is None or pending.active.version == ready.version
    return ready.version, ready.backend


def test_the_active_version_is_served(source: Source) -> None:
    (pending,) = source.offered()
    assert (pending.card.capability, pending.card.version) == ("test/scale", "2")
    with pytest.raises(LoadError, match="being pulled"):
        pending.infer([])
    assert served(source)[0] == "2"
    assert source.cache.remembered("scale") == "2"


@pytest.mark.parametrize("name", ["model.onnx", "card.json", "manifest.json"])
def test_where_the_active_one_is_damaged_the_one_before_is_served(
    source: Source, tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    spoil(tmp_path, "2", name)
    assert served(source)[0] == "1"
    if name == "model.onnx":
        assert "model.onnx has 4 bytes" in caplog.text


def test_where_the_repository_is_gone_what_was_pulled_is_served(source: Source, tmp_path: Path) -> None:
    assert served(source)[0] == "2"
    source.repository.activate("scale", "3")
    assert served(source)[0] == "3"
    shutil.rmtree(tmp_path / "repo")
    assert served(source)[0] == "3"
    shutil.rmtree(tmp_path / "cache")
    assert source.offered() == []


def test_a_damaged_repository_serves_what_was_pulled(source: Source, tmp_path: Path) -> None:
    source.repository.activate("scale", "3")
    assert served(source)[0] == "3"
    (tmp_path / "repo" / "scale" / "active.json").write_bytes(b"{")
    for version in ("1", "2", "3"):
        spoil(tmp_path, version, "manifest.json")
    assert served(source)[0] == "3"


def test_the_active_version_from_the_cache_where_it_cannot_be_pulled(source: Source, tmp_path: Path) -> None:
    assert served(source)[0] == "2"
    spoil(tmp_path, "2", "manifest.json")
    assert served(source)[0] == "2"


def test_where_nothing_can_be_served_it_is_said_of_the_active_one(source: Source, tmp_path: Path) -> None:
    (pending,) = source.offered()
    for version in ("1", "2", "3"):
        spoil(tmp_path, version)
    with pytest.raises(Damaged, match=r"scale/2: model\.onnx has 4 bytes"):
        source.first(pending)


def test_what_is_not_active_is_not_offered(source: Source, tmp_path: Path) -> None:
    (tmp_path / "repo" / "scale" / "active.json").unlink()
    assert source.offered() == []
    assert source.unknown(set()) == []
    source.repository.activate("scale", "1")
    assert source.unknown(set()) == ["scale"]
    assert source.unknown({"scale"}) == []


def test_a_model_that_cannot_be_read_leaves_the_others(
    source: Source, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    add(source.repository, folder_of(tmp_path / "o", 1.0), {"name": "other", "capability": "test/other"})
    source.repository.activate("other", "1")
    (tmp_path / "repo" / "scale" / "active.json").write_bytes(b"{")
    assert [pending.name for pending in source.offered()] == ["other"]
    assert "model scale is not served" in caplog.text


def test_a_pull_that_takes_long_is_told_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    time = 0.0
    progress = Progress("scale 2", lambda: time)
    for _ in range(24):
        time += 0.5
        progress(5_000_000)
    assert [record.getMessage() for record in caplog.records] == [
        "pulling scale 2: 50 MB are here",
        "pulling scale 2: 100 MB are here",
    ]


def test_the_cache_does_not_grow_without_end(source: Source, tmp_path: Path) -> None:
    for version in ("4", "5", "6", "7"):
        add(
            source.repository,
            folder_of(tmp_path / version, float(version)),
            {"name": "scale", "version": version},
        )
        active = source.repository.activate("scale", version)
        source.next("scale", active).close()
        source.taken("scale", version, active.kept)
    assert source.cache.versions("scale") == ["7", "6", "5"]
