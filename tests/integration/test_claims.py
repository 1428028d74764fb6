"""Claim checks end to end: `edgeway up` on a real Kafka, objects in folders."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from schemas.claims import as_value
from schemas.messages import Claim
from streams.claims import open_store
from streams.claims.values import value_of
from tests.helpers.caller import Caller, new_id, read_topics
from tests.helpers.kafka import serve as serve_kafka
from tests.helpers.roles import Role, edgeway

pytestmark = pytest.mark.integration
APP = """
import hashlib
from workers.sdk import capability

@capability("local/test/photo")
def photo(image: bytes) -> dict:
    return {"sha256": hashlib.sha256(image).hexdigest(), "mirror": image[::-1] if len(image) > 2**20 else b""}

@capability("local/test/read")
def read(text: str) -> dict:
    return {"side": "local", "length": len(text)}, 0.1

@capability("cloud/test/read")
def read_elsewhere(text: str) -> dict:
    return {"side": "cloud", "length": len(text)}, 0.99
"""
RULES = {
    "builtin": False,
    "privacy": {"detectors": ["formats"]},
    "tasks": {
        "photo": {"capability": "test/photo", "side": "local"},
        "read": {"capability": "test/read", "local_threshold": 0.9},
        "away": {"capability": "test/read", "side": "cloud"},
    },
}
PHOTO = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 12_000
MAIL = "jane.roe@corp.example"


@dataclass
class Running:
    kafka: str
    edge: Path
    cloud: Path

    @property
    def objects(self) -> str:
        return self.edge.as_uri()

    async def kept(self, data: bytes, content_type: str) -> Claim:
        store = open_store(self.objects)
        claim = await store.put(data, content_type=content_type, tenant=None)
        await store.close()
        return claim


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("claims")
    (folder / "app.py").write_text(APP)
    (folder / "rules.json").write_text(json.dumps(RULES | {"apps": [str(folder / "app.py")]}))
    clusters = serve_kafka("embedded")
    kafka = next(clusters)
    found = Running(kafka.bootstrap, folder / "edge", folder / "cloud")
    words = ["--objects", found.objects, "--cloud-objects", found.cloud.as_uri(), "--log-format", "text"]
    role = Role(folder, "up", "--kafka", kafka.bootstrap, "--rules", str(folder / "rules.json"), *words)
    try:
        role.start().wait_ready()
        yield found
        assert role.terminate() == 0, role.said
    finally:
        role.kill()
        next(clusters, None)


@pytest.fixture
async def caller(running: Running) -> AsyncIterator[Caller]:
    async with Caller(running.kafka) as caller:
        yield caller


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()] if folder.exists() else []


def test_an_image_of_three_megabytes_there_and_back(running: Running, tmp_path: Path) -> None:
    picture = tmp_path / "photo.png"
    picture.write_bytes(PHOTO)
    words = ["--kafka", running.kafka, "--objects", running.objects, "--wait", "--json"]
    sent = edgeway("send", "--task", "photo", "--input-file", f"image={picture}", *words)
    assert sent.returncode == 0, sent.stdout + sent.stderr
    result = json.loads(sent.stdout)
    assert result["status"] == "ok"
    assert result.get("output") is None
    claim = result["claim"]
    path = Path(claim["dataref"].removeprefix("file://"))
    assert path.is_relative_to(running.edge)
    data = path.read_bytes()
    assert (len(data), sha256(data).hexdigest()) == (claim["size"], claim["sha256"])
    assert value_of(data, claim["content_type"]) == {
        "sha256": sha256(PHOTO).hexdigest(),
        "mirror": PHOTO[::-1],
    }


def test_without_a_store_a_large_file_is_refused_and_a_small_one_sent(
    running: Running, tmp_path: Path
) -> None:
    picture = tmp_path / "photo.png"
    picture.write_bytes(PHOTO)
    words = ["--kafka", running.kafka, "--wait", "--json"]
    sent = edgeway("send", "--task", "photo", "--input-file", f"image={picture}", *words)
    assert sent.returncode == 2
    assert "--objects" in sent.stderr
    picture.write_bytes(PHOTO[:300_000])
    sent = edgeway("send", "--task", "photo", "--input-file", f"image={picture}", *words)
    assert sent.returncode == 0, sent.stderr
    assert json.loads(sent.stdout)["output"]["sha256"] == sha256(PHOTO[:300_000]).hexdigest()


async def test_a_harmless_text_goes_to_the_cloud_and_a_sensitive_one_by_no_way(
    running: Running, caller: Caller
) -> None:
    harmless = as_value(await running.kept(b"nothing to see", "text/plain"))
    for task in ("read", "away"):
        answer = await caller.ask({"task": task, "inputs": {"text": harmless}})
        assert answer.status == "ok"
        assert answer.body["output"] == {"side": "cloud", "length": 14}
    copies = files(running.cloud)
    assert {path.read_bytes() for path in copies} == {b"nothing to see"}
    for content, kind in (
        (f"write to {MAIL}".encode(), "text/plain"),
        (f'"write to {MAIL}"'.encode(), "application/json"),
    ):
        claim = as_value(await running.kept(content, kind))
        answer = await caller.ask({"task": "read", "inputs": {"text": claim}})
        assert answer.body["output"]["side"] == "local"
        assert answer.body["privacy"]["level"] == "high"
        answer = await caller.ask({"task": "away", "inputs": {"text": claim}})
        assert answer.code == "no_placement"
        whole = await running.kept(json.dumps({"text": f"write to {MAIL}"}).encode(), "application/json")
        claimed: dict[str, Any] = {"task": "read", "claim": as_value(whole)}
        answer = await caller.ask(claimed)
        assert answer.body["output"]["side"] == "local"
    assert files(running.cloud) == copies
    records = await read_topics(running.kafka, ["cloud.test.read"])
    assert len(records) == 2
    assert not [record for record in records if MAIL.encode() in record.value]
    assert all(running.edge.as_uri().encode() not in record.value for record in records)


async def test_what_is_not_there_is_told(running: Running, caller: Caller) -> None:
    claim = as_value(await running.kept(b"soon gone", "text/plain"))
    for path in files(running.edge):
        if path.read_bytes() == b"soon gone":
            path.unlink()
    answer = await caller.ask({"task": "photo", "inputs": {"image": claim}})
    assert answer.code == "object_missing"
    assert "its time is over" in answer.message
    answer = await caller.ask({"id": new_id(), "task": "read", "claim": claim})
    assert answer.code == "object_missing"
    escape = {**claim, "dataref": f"{running.objects}/_/../../rules.json"}
    answer = await caller.ask({"task": "photo", "inputs": {"image": escape}})
    assert answer.code == "object_missing"
    assert "no name" in answer.message
