"""Manifests and which version is active."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.errors import Damaged, RepositoryError
from workers.models.manifest import (
    KEPT,
    Active,
    File,
    Manifest,
    activated,
    check_files,
    check_path,
    decode_active,
    decode_manifest,
    encode,
    rolled_back,
)

SUM = "0" * 64
FILE = {"sha256": SUM, "bytes": 1}
numbers = st.integers(1, 5).map(str)


def manifest(**files: int) -> Manifest:
    return Manifest(name="m", version="1", files={path: File(SUM, size) for path, size in files.items()})


def test_a_manifest_is_what_was_written() -> None:
    found = Manifest(name="m", version="1.2.0", files={"card.json": File(SUM, 3)}, created_ms=5)
    assert decode_manifest(encode(found), "here") == found


BAD = {
    "no JSON": b"{",
    "no object": b"[]",
    "nothing": b"{}",
    "no card": {"name": "m", "version": "1", "files": {"model.onnx": FILE}},
    "a path out": {"name": "m", "version": "1", "files": {"card.json": FILE, "../x": FILE}},
    "an absolute path": {"name": "m", "version": "1", "files": {"card.json": FILE, "/etc/x": FILE}},
    "a hidden path": {"name": "m", "version": "1", "files": {"card.json": FILE, ".x": FILE}},
    "itself": {"name": "m", "version": "1", "files": {"card.json": FILE, "manifest.json": FILE}},
    "a name out": {"name": "../m", "version": "1", "files": {"card.json": FILE}},
    "a short sum": {"name": "m", "version": "1", "files": {"card.json": {"sha256": "0", "bytes": 1}}},
    "a negative size": {"name": "m", "version": "1", "files": {"card.json": {"sha256": SUM, "bytes": -1}}},
    "nested": b"[" * 100_000,
}


@pytest.mark.parametrize("raw", BAD.values(), ids=BAD.keys())
def test_what_is_no_manifest_is_refused_with_its_place(raw: object) -> None:
    content = raw if isinstance(raw, bytes) else json.dumps(raw).encode()
    with pytest.raises(Damaged, match=r"repo/m/1/manifest\.json"):
        decode_manifest(content, "repo/m/1/manifest.json")


@given(st.binary(max_size=60) | st.recursive(st.text(), lambda x: st.dictionaries(st.text(), x)).map(str))
def test_any_other_content_is_refused_and_nothing_else(raw: bytes | str) -> None:
    content = raw if isinstance(raw, bytes) else raw.encode("utf-8", "replace")
    for decode in (decode_manifest, decode_active):
        with pytest.raises(Damaged):
            decode(content, "here")


def test_files_that_are_missing_short_or_new_are_named() -> None:
    found = manifest(a=3, b=4)
    check_files(found, {"a": 3, "b": 4}, "m 1")
    for sizes, told in (
        ({"a": 3}, "b is missing"),
        ({"a": 3, "b": 2}, "b has 2 bytes, the manifest says 4"),
        ({"a": 3, "b": 4, "c": 1}, "c is not in the manifest"),
    ):
        with pytest.raises(Damaged, match=told):
            check_files(found, sizes, "m 1")


@given(
    st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3)),
    st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3)),
)
def test_only_the_very_files_pass(listed: dict[str, int], there: dict[str, int]) -> None:
    try:
        check_files(manifest(**listed), there, "m 1")
    except Damaged:
        assert listed != there
    else:
        assert listed == there


@pytest.mark.parametrize(
    "path", ["", "a//b", "a/../b", "..", "/a", "a/", ".a", "a/.b", "a\\b", "a\n", "manifest.json"]
)
def test_paths_stay_within_their_folder(path: str) -> None:
    with pytest.raises(RepositoryError):
        check_path(path)


@given(st.lists(numbers | st.none(), max_size=12), st.integers(0, 10))
def test_activations_keep_what_was_before(steps: list[str | None], now: int) -> None:
    """None is a rollback. It always comes to the version that was active before."""
    active: Active | None = None
    for version in steps:
        old = active
        if version is None:
            try:
                active = rolled_back(active, "m", now)
            except RepositoryError:
                assert old is None or not old.previous
                continue
            assert old is not None
            assert (active.version, *active.previous) == old.previous
        else:
            active = activated(active, version, now)
            assert active.version == version
            if old is not None and old.version != version:
                assert active.previous[0] == old.version
        assert len(active.kept) <= KEPT
        assert len(set(active.kept)) == len(active.kept)
        assert old is None or active.since_ms > old.since_ms
        assert decode_active(encode(active), "here") == active
