"""A model repository on S3, as a real server speaks it."""

from __future__ import annotations

import asyncio
import gc
import json
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from edgeway.cli import main
from tests.helpers.faulty_server import Fault, faulty
from tests.helpers.models import folder_of, placed
from tests.helpers.servers import S3Server
from workers.backends import Row
from workers.errors import Damaged, RepositoryError
from workers.models import url_store
from workers.models.adding import add
from workers.models.chosen import Source
from workers.models.opening import open_store
from workers.models.pull import Cache, verify_folder
from workers.models.repository import Repository

pytestmark = pytest.mark.integration


def bucket_of(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    import s3fs

    for name, value in server.keys.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    name = f"models-{uuid.uuid4().hex[:12]}"
    s3fs.S3FileSystem(skip_instance_cache=True).mkdir(name)
    return f"s3://{name}/team/a"


@pytest.fixture
def url(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """A place in a new bucket, by the settings of the environment."""
    return bucket_of(s3_server, monkeypatch)


@pytest.fixture
def own_url(own_s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """A place on a server that may be killed."""
    return bucket_of(own_s3_server, monkeypatch)


def test_the_commands_keep_a_repository_on_s3(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EDGEWAY_MODELS", url)
    monkeypatch.setenv("EDGEWAY_MODELS_CACHE", str(tmp_path / "cache"))

    def run(*words: str) -> tuple[int, str]:
        capsys.readouterr()
        return main(["models", *words]), capsys.readouterr().out

    model = str(folder_of(tmp_path / "model", 2.0))
    for _ in range(3):
        assert run("add", model, "--name", "scale", "--activate")[0] == 0
    assert run("rollback", "scale") == (0, "scale 2 is active, in place of 3\n")
    assert run("prune", "--keep", "1")[0] == 0
    assert json.loads(run("list", "--json")[1])["versions"] == ["2", "3"]
    assert run("verify") == (0, "scale 2: as it was added\nscale 3: as it was added\n")
    assert run("activate", "scale") == (0, "scale 3 is active, in place of 2\n")


def test_what_was_changed_on_s3_is_refused_and_the_old_one_served(url: str, tmp_path: Path) -> None:
    source = Source(url, tmp_path / "cache")
    for version in ("1", "2"):
        add(
            source.repository,
            folder_of(tmp_path / version, float(version), version=version),
            {"name": "scale"},
        )
        source.repository.activate("scale", version)
    source.repository.store.write("scale/2/model.onnx", b"half")
    with pytest.raises(Damaged, match=r"model\.onnx has 4 bytes"):
        source.repository.verify("scale", "2")
    (pending,) = source.offered()
    ready = source.first(pending)
    assert ready.version == "1"
    (answer,) = ready.backend.infer([Row({"x": [1, 2, 3, 4]}, {})])
    assert answer.output == {"y": [1, 2, 3, 4]}


def test_of_those_who_add_the_same_version_one_succeeds(url: str, tmp_path: Path) -> None:
    """The manifest is written on the condition that there is none."""

    def one(number: int) -> str | None:
        try:
            placed(Repository(open_store(url)), tmp_path / str(number), "1")
        except RepositoryError as error:
            return str(error)
        return None

    with ThreadPoolExecutor(4) as threads:
        told = list(threads.map(one, range(4)))
    assert told.count(None) == 1
    Repository(open_store(url)).verify("m", "1")


def test_a_large_file_is_pulled_on_by_ranges(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(url_store, "RANGE", 1 << 16)
    repository = Repository(open_store(url))
    manifest = placed(repository, tmp_path, "1", {"weights.bin": bytes(range(256)) * 4096})
    cache = Cache(tmp_path / "cache", repository.store.url)
    given = _cut(repository, monkeypatch, after=5)
    with pytest.raises(RepositoryError, match="the line was cut"):
        cache.pull(repository, "m", "1")
    _cut(repository, monkeypatch, after=10_000, given=given)
    assert verify_folder(cache.pull(repository, "m", "1")) == manifest
    assert sum(given) == manifest.size


def _cut(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, after: int, given: list[int] | None = None
) -> list[int]:
    """Have the line cut after so many pieces; the sizes of what came."""
    store: Any = repository.store
    pieces: Callable[[str, int], Iterator[bytes]] = type(store).chunks
    sizes = [] if given is None else given
    end = len(sizes) + after

    def chunks(path: str, start: int) -> Iterator[bytes]:
        for chunk in pieces(store, path, start):
            if len(sizes) >= end:
                raise RepositoryError("the line was cut")
            sizes.append(len(chunk))
            yield chunk

    monkeypatch.setattr(store, "chunks", chunks, raising=False)
    return sizes


def test_a_server_that_is_gone_leaves_what_was_pulled(
    own_url: str, own_s3_server: S3Server, tmp_path: Path
) -> None:
    source = Source(own_url, tmp_path / "cache")
    add(source.repository, folder_of(tmp_path / "model", 2.0), {"name": "scale"})
    source.repository.activate("scale", "1")
    source.first(source.offered()[0]).backend.close()
    own_s3_server.kill()
    began = time.monotonic()
    with pytest.raises(RepositoryError, match="EndpointConnectionError"):
        source.active("scale")
    (pending,) = Source(own_url, tmp_path / "cache").offered()
    assert source.first(pending).version == "1"
    assert time.monotonic() - began < 60


def test_a_bucket_that_is_not_there_holds_nothing(
    s3_server: S3Server, url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = Source("s3://nobodys-bucket/x", tmp_path / "cache")
    assert source.offered() == []
    assert "s3://nobodys-bucket/x: there is no such bucket" in caplog.text
    with pytest.raises(RepositoryError, match="nobodys-bucket/x: there is no such bucket"):
        placed(source.repository, tmp_path, "1")
    with pytest.raises(RepositoryError, match="there is no such bucket"):
        source.repository.models()
    assert Source(url, tmp_path / "cache").repository.models() == [], "an empty one holds nothing"


async def test_a_store_that_is_dropped_beside_a_loop_closes_nothing_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a server that keeps connections: closing one there waited on another loop."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "any")
    nothing = Fault(404, body=b"<Error><Code>NoSuchKey</Code><Message>none</Message></Error>")
    with faulty(lambda _: None) as server:
        server.fault = lambda _: nothing
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        assert Source("s3://bucket/x", tmp_path / "cache").offered() == []
        gc.collect()
        await asyncio.sleep(0.2)
        gc.collect()
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []
