"""Pulling versions into a cache: whole or not at all."""

from __future__ import annotations

import errno
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.models import placed
from workers.errors import Damaged, RepositoryError
from workers.models import local_store, pull, url_store
from workers.models.opening import open_store
from workers.models.pull import Cache, verify_folder
from workers.models.repository import Repository


class Counting:
    """A store that counts the bytes it gives, and may break off."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.given: dict[str, int] = {}
        self.breaks_at = -1

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def chunks(self, path: str, start: int) -> Iterator[bytes]:
        for chunk in self._store.chunks(path, start):
            self.given[path] = self.given.get(path, 0) + len(chunk)
            yield chunk
            if sum(self.given.values()) >= self.breaks_at >= 0:
                raise RepositoryError("the line was cut")


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_store, "CHUNK", 512)
    monkeypatch.setattr(url_store, "RANGE", 512)


@pytest.fixture(params=["folder", "memory"])
def repository(request: pytest.FixtureRequest, tmp_path: Path) -> Repository:
    url = {"folder": str(tmp_path / "repo"), "memory": f"memory://{uuid.uuid4().hex}/r"}[request.param]
    return Repository(Counting(open_store(url)))  # type: ignore[arg-type]


@pytest.fixture
def cache(tmp_path: Path, repository: Repository) -> Cache:
    return Cache(tmp_path / "cache", repository.store.url)


def test_a_pulled_version_is_the_one_in_the_repository(
    repository: Repository, cache: Cache, tmp_path: Path
) -> None:
    manifest = placed(repository, tmp_path, "1", {"deep/er/data": b"d" * 2000, "empty": b""})
    seen: list[int] = []
    folder = cache.pull(repository, "m", "1", seen.append)
    assert verify_folder(folder) == manifest
    assert sum(seen) == manifest.size
    assert len(seen) > 5
    store: Any = repository.store
    given = dict(store.given)
    assert cache.pull(repository, "m", "1", seen.append) == folder
    assert store.given == given
    assert sum(seen) == 2 * manifest.size
    assert cache.there("m", "1") == folder


def test_what_was_pulled_is_not_pulled_again(repository: Repository, cache: Cache, tmp_path: Path) -> None:
    manifest = placed(repository, tmp_path, "1")
    store: Any = repository.store
    store.breaks_at = 3000
    with pytest.raises(RepositoryError, match="the line was cut"):
        cache.pull(repository, "m", "1")
    assert cache.versions("m") == []
    with pytest.raises(Damaged, match="never pulled"):
        cache.there("m", "1")
    store.breaks_at = -1
    seen: list[int] = []
    cache.pull(repository, "m", "1", seen.append)
    assert sum(store.given.values()) == manifest.size
    assert sum(seen) == manifest.size


def test_a_start_that_is_something_else_is_pulled_from_the_beginning(
    repository: Repository, cache: Cache, tmp_path: Path
) -> None:
    placed(repository, tmp_path, "1")
    store: Any = repository.store
    store.breaks_at = 3000
    with pytest.raises(RepositoryError):
        cache.pull(repository, "m", "1")
    (half,) = (tmp_path / "cache").glob("*/m/.pulling-1/model.onnx")
    for wrong in (b"z" * 1000, b"z" * 9000):
        half.write_bytes(wrong)
        store.breaks_at = -1
        seen: list[int] = []
        folder = cache.pull(repository, "m", "1", seen.append)
        assert sum(seen) == verify_folder(folder).size
        folder.rename(half.parent)
        (half.parent / "manifest.json").rename(half.parent / ".manifest")


def test_files_that_are_not_those_of_the_manifest_leave_nothing(
    repository: Repository, cache: Cache, tmp_path: Path
) -> None:
    for version in ("1", "2", "3"):
        placed(repository, tmp_path, version)
    repository.store.write("m/1/model.onnx", b"y" * 5000)
    repository.store.write("m/2/model.onnx", b"half")
    repository.store.write("m/3/more", b"")
    for version, told in (("1", r"model\.onnx is not"), ("2", "has 4 bytes"), ("3", "more is not in")):
        with pytest.raises(Damaged, match=told):
            cache.pull(repository, "m", version)
    assert cache.versions("m") == []


def test_a_copy_that_was_damaged_is_pulled_again(
    repository: Repository, cache: Cache, tmp_path: Path
) -> None:
    placed(repository, tmp_path, "1")
    folder = cache.pull(repository, "m", "1")
    for harm in ("changed", "gone", "more"):
        file = folder / ("more" if harm == "more" else "model.onnx")
        file.unlink() if harm == "gone" else file.write_bytes(b"z" * 5000)
        with pytest.raises(Damaged):
            cache.there("m", "1")
        verify_folder(cache.pull(repository, "m", "1"))


def test_one_of_several_pulls_and_the_others_find_it(
    repository: Repository, cache: Cache, tmp_path: Path
) -> None:
    manifest = placed(repository, tmp_path, "1")
    found: list[Path] = []

    def work() -> None:
        own = Cache(tmp_path / "cache", repository.store.url)
        found.append(own.pull(repository, "m", "1"))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == [cache.there("m", "1")] * 4
    store: Any = repository.store
    assert sum(store.given.values()) == manifest.size


def test_no_room_is_told_before_anything_is_pulled(
    repository: Repository, cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed(repository, tmp_path, "1")
    monkeypatch.setattr(pull.shutil, "disk_usage", lambda _: pull.shutil._ntuple_diskusage(9000, 8000, 1000))
    with pytest.raises(RepositoryError, match=r"needs \d+ bytes more, and .* has 1000: make room"):
        cache.pull(repository, "m", "1")
    assert list((tmp_path / "cache").glob("*/m/.pulling*")) == []


def test_a_disk_that_fills_up_meanwhile_leaves_no_half_version(
    repository: Repository, cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed(repository, tmp_path, "1")

    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(pull.os, "fsync", full)
        with pytest.raises(RepositoryError, match="No space left on device; make room"):
            cache.pull(repository, "m", "1")
    assert cache.versions("m") == []
    assert list((tmp_path / "cache").glob("*/m/.pulling*")) == []
    verify_folder(cache.pull(repository, "m", "1"))


def test_the_cache_keeps_three_versions_and_those_in_use(
    repository: Repository, cache: Cache, tmp_path: Path
) -> None:
    for version in ("1", "2", "3", "4", "5"):
        placed(repository, tmp_path, version)
        cache.pull(repository, "m", version)
        cache.remember("m", version)
    assert cache.remembered("m") == "5"
    assert cache.versions("m") == ["5", "4", "3", "2", "1"]
    assert cache.prune("m", {"1"}) == ["2"]
    assert cache.versions("m") == ["5", "4", "3", "1"]
    assert cache.names() == ["m"]
    assert Cache(tmp_path / "cache", "elsewhere").names() == []
    assert Cache(tmp_path / "cache", "elsewhere").remembered("m") is None
