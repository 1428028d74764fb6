"""Object stores: the same contract over memory, files and S3."""

from __future__ import annotations

import asyncio
import os
import threading
import time
import uuid
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from schemas.claims import as_value, claim_of
from schemas.messages import Claim
from streams.claims import (
    MAX_OBJECT_BYTES,
    ClaimError,
    FsspecStore,
    ObjectForbidden,
    ObjectMissing,
    Objects,
    ObjectStore,
    ObjectTooLarge,
    StoreAway,
    open_objects,
    open_store,
)

KINDS = ["memory", "file", pytest.param("s3", marks=pytest.mark.integration)]


@pytest.fixture(params=KINDS)
async def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ObjectStore]:
    """An empty store."""
    if request.param == "memory":
        url = f"memory://claims-{uuid.uuid4().hex}"
    elif request.param == "file":
        url = f"file://{tmp_path}/objects"
    else:
        url = s3_url(request.getfixturevalue("s3_server"), monkeypatch)
    found = open_store(url)
    yield found
    await found.close()


def s3_url(server: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    import s3fs

    for name, value in server.keys.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    bucket = f"claims-{uuid.uuid4().hex[:12]}"
    s3fs.S3FileSystem(skip_instance_cache=True).mkdir(bucket)
    return f"s3://{bucket}/edge"


@pytest.mark.parametrize(
    ("data", "tenant"), [(b"", None), (b"x", ".."), (bytes(range(256)) * 2000, "_"), (b"\0", "acme.x")]
)
async def test_what_was_put_is_got(store: ObjectStore, data: bytes, tenant: str | None) -> None:
    claim = await store.put(data, content_type="image/png", tenant=tenant)
    assert claim.dataref.startswith(f"{store.base}/")
    assert (claim.size, claim.content_type) == (len(data), "image/png")
    assert claim.sha256 == sha256(data).hexdigest()
    assert await store.get(claim, tenant=tenant) == data


async def test_each_put_has_a_name_of_its_own(store: ObjectStore) -> None:
    claims = [await store.put(b"same", content_type=None, tenant=None) for _ in range(2)]
    assert claims[0].dataref != claims[1].dataref


async def test_what_is_of_another_tenant_is_forbidden(store: ObjectStore) -> None:
    tenants = [None, "a", "_", "5F"]
    claims = {tenant: await store.put(b"x", content_type=None, tenant=tenant) for tenant in tenants}
    for owner, claim in claims.items():
        for tenant in tenants:
            if tenant != owner:
                with pytest.raises(ObjectForbidden):
                    await store.get(claim, tenant=tenant)


async def test_what_is_not_there_or_not_what_the_claim_says_is_missing(store: ObjectStore) -> None:
    claim = await store.put(b"12345", content_type=None, tenant=None)
    for changed in (
        {"dataref": claim.dataref + "0"},
        {"dataref": claim.dataref.rpartition("/")[0]},
        {"size": 4},
        {"size": 6},
        {"sha256": "0" * 64},
    ):
        fields = {"dataref": claim.dataref, "sha256": claim.sha256, "size": claim.size, **changed}
        with pytest.raises(ObjectMissing):
            await store.get(Claim(**fields), tenant=None)  # type: ignore[arg-type]


async def test_what_is_larger_than_allowed_is_not_read(store: ObjectStore) -> None:
    claim = await store.put(b"12345", content_type=None, tenant=None)
    with pytest.raises(ObjectTooLarge):
        await store.get(claim, tenant=None, limit=4)
    big = Claim(dataref=claim.dataref, sha256=claim.sha256, size=MAX_OBJECT_BYTES + 1)
    with pytest.raises(ObjectTooLarge):
        await store.get(big, tenant=None, limit=2 * MAX_OBJECT_BYTES)
    with pytest.raises(ObjectTooLarge):
        await store.put(bytes(MAX_OBJECT_BYTES + 1), content_type=None, tenant=None)


async def test_a_digest_in_capitals_is_the_same(tmp_path: Path) -> None:
    """As some tools write it: it made the claim an ordinary map, which went to the model as it was."""
    store = FsspecStore(f"file://{tmp_path}/objects")
    claim = await store.put(b"ordinary", content_type=None, tenant=None)
    loud = Claim(dataref=claim.dataref, sha256=claim.sha256.upper(), size=claim.size)
    assert claim_of(as_value(loud)) == claim
    assert await store.get(loud, tenant=None) == b"ordinary"
    await store.close()


async def test_a_pipe_keeps_no_thread(tmp_path: Path) -> None:
    store = FsspecStore(f"file://{tmp_path}/objects", timeout_s=1.0, threads=1)
    claim = await store.put(b"ordinary", content_type=None, tenant=None)
    pipe = Path(claim.dataref.removeprefix("file://")).with_name("pipe")
    os.mkfifo(pipe)
    with pytest.raises(ObjectMissing, match="a pipe"):
        await store.get(Claim(dataref=f"file://{pipe}", sha256=claim.sha256, size=8), tenant=None)
    assert await store.get(claim, tenant=None) == b"ordinary"
    await store.close()


async def test_a_link_leads_nowhere(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "objects"))
    claim = await store.put(b"mine", content_type=None, tenant=None)
    secret = tmp_path / "secret"
    secret.write_bytes(b"mine")
    link = Path(claim.dataref.removeprefix("file://")).with_name("link")
    link.symlink_to(secret)
    with pytest.raises(ObjectForbidden):
        await store.get(Claim(dataref=f"file://{link}", sha256=claim.sha256, size=claim.size), tenant=None)


class Slow:
    """Hangs until told."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.calls = 0

    def cat_file(self, path: str, start: int, end: int) -> bytes:
        self.calls += 1
        self.go.wait(10)
        return b"x"


async def test_calls_that_hang_cost_their_time_and_no_more_threads_than_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = FsspecStore("memory://slow", timeout_s=0.05, threads=2)
    slow = Slow()
    monkeypatch.setattr(store, "_fs", slow)
    digest = sha256(b"x").hexdigest()
    claim = Claim(dataref=f"{store.base}/_/20260101/x", sha256=digest, size=1)
    began = time.monotonic()
    told = await asyncio.gather(*(store.get(claim, tenant=None) for _ in range(20)), return_exceptions=True)
    assert {type(each) for each in told} == {StoreAway}
    assert time.monotonic() - began < 2
    assert slow.calls == 2, "what waits for a thread is not begun"
    slow.go.set()
    await asyncio.sleep(0.05)
    assert await store.get(claim, tenant=None) == b"x"
    await store.close()
    with pytest.raises(StoreAway):
        await store.get(claim, tenant=None)


@pytest.mark.integration
async def test_a_server_that_is_gone_is_away(own_s3_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(s3_url(own_s3_server, monkeypatch))
    claim = await store.put(b"x", content_type=None, tenant=None)
    own_s3_server.kill()
    with pytest.raises(StoreAway):
        await store.get(claim, tenant=None)
    with pytest.raises(StoreAway):
        await store.put(b"x", content_type=None, tenant=None)


@pytest.mark.integration
async def test_a_bucket_that_is_not_there_is_told(s3_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    s3_url(s3_server, monkeypatch)
    with pytest.raises(StoreAway, match="no such bucket"):
        await open_store("s3://nobodys-bucket/x").put(b"x", content_type=None, tenant=None)


@pytest.mark.parametrize(
    "url",
    [
        *("", "s3://", "s3:/x", "nowhere", "s3://b/../c", "s3://b?x=1", "s3://b/#x", "file:///tmp/*"),
        *("simplecache::s3://b/x", "nosuch://b/x", "file:///a/%2e%2e/b"),
    ],
)
def test_what_is_no_store_is_refused(url: str) -> None:
    with pytest.raises(ClaimError):
        open_store(url)


def test_credentials_are_in_no_claim() -> None:
    assert FsspecStore("memory://user:secret@place/x").base == "memory://place/x"


async def test_two_stores_each_answer_for_their_own() -> None:
    objects = open_objects("memory://edge-a", "memory://cloud-a")
    assert objects.local is not None
    assert objects.cloud is not None
    mine = await objects.local.put(b"edge", content_type=None, tenant=None)
    theirs = await objects.cloud.put(b"cloud", content_type=None, tenant=None)
    assert await objects.get(mine, tenant=None) == b"edge"
    assert await objects.get(theirs, tenant=None) == b"cloud"
    assert not objects.is_cloud(mine.dataref)
    assert objects.is_cloud(theirs.dataref)
    with pytest.raises(ObjectForbidden):
        await objects.get(Claim(dataref="memory://other/_/20260101/x", sha256="0" * 64, size=1), tenant=None)
    with pytest.raises(StoreAway):
        await Objects().get(mine, tenant=None)


@pytest.mark.parametrize(
    ("local", "cloud"),
    [("memory://a", "memory://a"), ("memory://a", "memory://a/b"), ("s3://b/x/y", "s3://b/x")],
)
def test_stores_that_lie_in_each_other_are_refused(local: str, cloud: str) -> None:
    with pytest.raises(ClaimError, match="lie in each other"):
        open_objects(local, cloud)


async def test_what_was_read_and_written_is_counted() -> None:
    from prometheus_client import REGISTRY

    def counted(operation: str, outcome: str) -> float:
        labels = {"operation": operation, "outcome": outcome}
        return REGISTRY.get_sample_value("edgeway_objects_total", labels) or 0.0

    store = open_store("memory://counted")
    pairs = [("write", "ok"), ("read", "ok"), ("read", "forbidden"), ("read", "missing")]
    before = [counted(*pair) for pair in pairs]
    claim = await store.put(b"x", content_type=None, tenant=None)
    await store.get(claim, tenant=None)
    with pytest.raises(ObjectForbidden):
        await store.get(claim, tenant="acme")
    with pytest.raises(ObjectMissing):
        await store.get(Claim(dataref=f"{claim.dataref}0", sha256=claim.sha256, size=1), tenant=None)
    assert [counted(*pair) for pair in pairs] == [count + 1 for count in before]
