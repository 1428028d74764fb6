"""Repositories in a folder and at a URL."""

from __future__ import annotations

import json
import threading
import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.models import placed
from workers.errors import Damaged, RepositoryError
from workers.models.manifest import Active
from workers.models.opening import open_store
from workers.models.repository import Repository, to_prune
from workers.models.stores import Missing
from workers.models.versions import in_order


@pytest.fixture(params=["folder", "file", "memory"])
def repository(request: pytest.FixtureRequest, tmp_path: Path) -> Repository:
    urls = {
        "folder": str(tmp_path / "repo"),
        "file": (tmp_path / "repo").as_uri(),
        "memory": f"memory://{uuid.uuid4().hex}/models",
    }
    return Repository(open_store(urls[request.param]))


def test_an_empty_repository_holds_nothing(repository: Repository) -> None:
    assert repository.models() == []
    assert repository.versions("m") == []
    assert repository.active("m") is None
    with pytest.raises(RepositoryError, match="nothing is active"):
        repository.rollback("m")
    with pytest.raises(Missing, match="m has no version 1, but none"):
        repository.activate("m", "1")


def test_versions_are_activated_and_rolled_back(repository: Repository, tmp_path: Path) -> None:
    for version in ("1", "2", "10"):
        placed(repository, tmp_path, version, {"more/data.bin": b"d"})
    assert repository.versions("m") == ["1", "2", "10"]
    assert sorted(repository.store.sizes("m/1")) == [
        "card.json",
        "manifest.json",
        "model.onnx",
        "more/data.bin",
    ]
    for version in ("1", "2", "10"):
        repository.activate("m", version)
    assert repository.active("m").previous == ("2", "1")  # type: ignore[union-attr]
    assert repository.rollback("m").version == "2"
    assert repository.rollback("m").version == "1"
    with pytest.raises(RepositoryError, match="there is none before 1"):
        repository.rollback("m")
    (listed,) = repository.models()
    assert (listed.versions, listed.card["version"], listed.problem) == (["1", "2", "10"], "1", "")


def test_a_version_is_never_overwritten(repository: Repository, tmp_path: Path) -> None:
    old = placed(repository, tmp_path, "1")
    with pytest.raises(RepositoryError, match="never overwritten"):
        placed(repository, tmp_path / "other", "1", {"model.onnx": b"other"})
    assert repository.verify("m", "1") == old


def test_a_version_without_a_manifest_is_none_and_may_be_added(
    repository: Repository, tmp_path: Path
) -> None:
    repository.store.write("m/1/model.onnx", b"half")
    repository.store.write("m/1/left.over", b"of an add that was killed")
    assert repository.versions("m") == []
    placed(repository, tmp_path, "1")
    repository.verify("m", "1")


def test_what_was_changed_later_is_named(repository: Repository, tmp_path: Path) -> None:
    for version in ("1", "2", "3", "4", "5"):
        placed(repository, tmp_path, version)
    repository.store.write("m/1/model.onnx", b"y" * 5000)
    repository.store.write("m/2/model.onnx", b"half")
    repository.store.write("m/3/extra", b"")
    repository.store.write("m/4/card.json", b"{}")
    repository.store.write("m/5/manifest.json", b"{")
    for version, told in (
        ("1", "model.onnx is not what was added"),
        ("2", "model.onnx has 4 bytes"),
        ("3", "extra is not in the manifest"),
        ("4", "card.json has 2 bytes"),
        ("5", "m/5/manifest.json"),
    ):
        with pytest.raises(Damaged, match=told):
            repository.verify("m", version)
    with pytest.raises(Damaged, match="not the card of the manifest"):
        repository.card("m", "4")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    repository = Repository(open_store(str(tmp_path / "repo")))
    placed(repository, tmp_path, "1")
    (tmp_path / "repo" / "m" / "1" / "model.onnx").unlink()
    with pytest.raises(Damaged, match=r"model\.onnx is missing"):
        repository.verify("m", "1")
    (tmp_path / "repo" / "m" / "1").rename(tmp_path / "repo" / "m" / "7")
    with pytest.raises(Damaged, match="somebody renamed a folder"):
        repository.manifest("m", "7")


def test_a_damaged_active_file_is_told_and_written_anew(repository: Repository, tmp_path: Path) -> None:
    placed(repository, tmp_path, "1")
    repository.store.write("m/active.json", b'{"version": "../1"}')
    with pytest.raises(Damaged, match=r"active\.json"):
        repository.active("m")
    (listed,) = repository.models()
    assert "active.json" in listed.problem
    assert repository.activate("m", "1").version == "1"
    repository.store.write("m/active.json", json.dumps({"version": "9"}).encode())
    (listed,) = repository.models()
    assert "9 is active and not there" in listed.problem


def test_prune_keeps_the_active_and_two_before(repository: Repository, tmp_path: Path) -> None:
    for version in ("1", "2", "3", "4", "5", "6"):
        placed(repository, tmp_path, version)
    for version in ("1", "3", "5"):
        repository.activate("m", version)
    assert [gone.version for gone in repository.prune("m", dry_run=True)] == ["2", "4"]
    assert repository.versions("m") == ["1", "2", "3", "4", "5", "6"]
    gone = repository.prune("m")
    assert [each.version for each in gone] == ["2", "4"]
    assert gone[0].bytes > 5000
    assert repository.versions("m") == ["1", "3", "5", "6"]
    assert repository.prune("m") == []
    assert [each.version for each in repository.prune("m", 1)] == ["1", "3"]
    with pytest.raises(RepositoryError, match="at least one"):
        repository.prune("m", 0)


numbers = st.lists(st.integers(1, 9).map(str), unique=True)


@given(numbers, numbers, st.integers(1, 4))
def test_pruning_never_takes_the_active_one(there: list[str], was: list[str], keep: int) -> None:
    active = Active(version=was[0], previous=tuple(was[1:3])) if was else None
    gone = to_prune(there, active, keep)
    kept = [version for version in in_order(there) if version not in gone]
    assert set(gone) <= set(there)
    assert len(kept) >= min(keep, len(there))
    if active is None or active.version not in there:
        assert kept == in_order(there)[-keep:]
        return
    assert active.version not in gone
    newer = {v for v in there if int(v) > int(active.version)}
    assert len(set(kept) - newer) <= keep


def test_many_at_once_leave_a_sound_repository(repository: Repository, tmp_path: Path) -> None:
    """Each adds its own version, all try to add the same one, and all activate."""
    told: list[str] = []

    def work(number: int) -> None:
        own = tmp_path / str(number)
        placed(repository, own, str(number))
        repository.activate("m", str(number))
        try:
            placed(repository, own, "99", {"who": b"all of them say the same"})
        except RepositoryError as error:
            told.append(str(error))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert repository.versions("m") == ["1", "2", "3", "4", "99"]
    assert len(told) == 3
    for version in repository.versions("m"):
        repository.verify("m", version)
    active = repository.active("m")
    assert active is not None
    if "://" not in repository.store.url:  # object storage has no locks: the last one wins there
        assert len(active.kept) == 3


def test_urls_that_name_no_place_are_refused() -> None:
    for url, told in (
        ("s3://", "names no place"),
        ("strange://bucket/x", "Protocol not known"),
        ("file://host/models", "three slashes"),
    ):
        with pytest.raises(RepositoryError, match=told):
            open_store(url)


def test_no_password_of_a_url_is_shown() -> None:
    assert open_store("memory://user:secret@host/x").url == "memory://host/x"


def test_a_folder_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "repo").write_text("a file")
    repository = Repository(open_store(str(tmp_path / "repo")))
    with pytest.raises(RepositoryError, match="repo"):
        placed(repository, tmp_path / "x", "1")
