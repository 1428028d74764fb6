"""Files as inputs of `edgeway send`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from edgeway.cli import main
from edgeway.cli.input_files import with_files
from edgeway.errors import UsageError
from schemas.claims import INLINE_BYTES, claim_of
from schemas.messages import Request
from streams.settings import Settings

ASKED = Request(task="t", inputs={"text": "hello"}, tenant="acme")


def inputs_of(settings: Settings, **files: Path) -> dict[str, Any]:
    return with_files(ASKED, [f"{name}={path}" for name, path in files.items()], settings).inputs


def written(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def test_small_files_are_values_by_their_suffix(tmp_path: Path) -> None:
    found = inputs_of(
        Settings(objects=f"file://{tmp_path}/objects"),
        a=written(tmp_path, "a.txt", "é".encode()),
        b=written(tmp_path, "b.json", b'{"n": 1}'),
        c=written(tmp_path, "c.png", b"\x89PNG"),
        d=written(tmp_path, "d", b"\xff"),
    )
    assert found == {"text": "hello", "a": "é", "b": {"n": 1}, "c": b"\x89PNG", "d": b"\xff"}
    assert not (tmp_path / "objects").exists()


def test_a_large_file_goes_to_the_store_of_its_tenant(tmp_path: Path) -> None:
    data = b"\x89PNG" * INLINE_BYTES
    found = inputs_of(Settings(objects=f"file://{tmp_path}/objects"), image=written(tmp_path, "i.png", data))
    claim = claim_of(found["image"])
    assert claim is not None
    assert claim.content_type == "image/png"
    path = Path(claim.dataref.removeprefix("file://"))
    assert path.relative_to(tmp_path / "objects").parts[0] == "acme"
    assert path.read_bytes() == data


def test_without_a_store_what_fits_a_record_is_sent_in_it(tmp_path: Path) -> None:
    half = written(tmp_path, "half", bytes(600_000))
    assert inputs_of(Settings(), a=half)["a"] == bytes(600_000)
    with pytest.raises(UsageError, match="--objects"):
        inputs_of(Settings(), a=half, b=half)


@pytest.mark.parametrize("pair", ["nofile", "a=", "=b", "a=/nowhere/at/all"])
def test_what_is_no_file_is_told(pair: str) -> None:
    with pytest.raises(UsageError, match="--input-file"):
        with_files(ASKED, [pair], Settings())


def test_a_file_that_is_not_what_its_suffix_says_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="application/json"):
        inputs_of(Settings(), a=written(tmp_path, "a.json", b"{"))


def test_many_requests_bring_their_own_inputs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["send", "--file", "-", "--input-file", "a=b"]) == 2
    assert "leave out" in capsys.readouterr().err
