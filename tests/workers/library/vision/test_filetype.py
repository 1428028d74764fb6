"""`local/file/type` on real files of many kinds."""

from __future__ import annotations

import asyncio
import base64
import gzip
import io
import json
import sqlite3
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.workers.library.vision.looking import DATA, answered, asked, refused
from workers.library.vision.filetype import CARD, FileTypeBackend

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def backend() -> FileTypeBackend:
    made = FileTypeBackend()
    asyncio.run(made.load())
    return made


def image(kind: str) -> bytes:
    out = io.BytesIO()
    Image.open(DATA / "cat.jpg").save(out, kind)
    return out.getvalue()


def zipped() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        file.write(ROOT / "README.md", "README.md")
    return out.getvalue()


def tarred() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as file:
        file.add(ROOT / "README.md", "README.md")
    return out.getvalue()


def sqlite() -> bytes:
    with sqlite3.connect(":memory:") as made:
        made.execute("create table photos (id integer primary key, name text)")
        return made.serialize()


FILES = {
    "jpeg": (DATA / "cat.jpg").read_bytes,
    "png": (DATA / "scan.png").read_bytes,
    "gif": lambda: image("GIF"),
    "bmp": lambda: image("BMP"),
    "webp": lambda: image("WEBP"),
    "pdf": lambda: image("PDF"),
    "zip": zipped,
    "tar": tarred,
    "gzip": lambda: gzip.compress((ROOT / "README.md").read_bytes()),
    "sqlite": sqlite,
    "elf": Path(sys.executable).resolve().read_bytes,
    "python": (ROOT / "workers" / "service.py").read_bytes,
    "markdown": (ROOT / "README.md").read_bytes,
    "json": (ROOT / "docs" / "schemas" / "asyncapi.json").read_bytes,
    "toml": (ROOT / "pyproject.toml").read_bytes,
    "csv": (ROOT / "examples" / "demo" / "data" / "banking77_test_500.csv").read_bytes,
}


@pytest.mark.parametrize("label", FILES)
def test_real_files_are_known(label: str, backend: FileTypeBackend) -> None:
    content = FILES[label]()
    output = answered(backend, {"file": content})
    assert output["label"] == label
    assert output["size"] == len(content)
    assert output["mime"]
    assert output["extensions"]


def test_the_card_counts_these_files() -> None:
    assert CARD.quality.startswith(f"{len(FILES)} of {len(FILES)} files")


def test_bytes_base64_and_data_urls_are_one_file(backend: FileTypeBackend) -> None:
    content = FILES["png"]()
    text = base64.b64encode(content).decode()
    ways = [content, text, f"data:application/octet-stream;base64,{text}"]
    answers = [asked(backend, {"file": way}) for way in ways]
    assert answers[0].confidence is not None
    assert answers[0].confidence > 0.9
    assert all(answer == answers[0] for answer in answers)


def test_what_is_no_known_kind_says_what_it_looks_like(backend: FileTypeBackend) -> None:
    noise = json.dumps(list(range(1))).encode() + bytes((at * 197 + at // 7) % 256 for at in range(5000))
    output = answered(backend, {"file": noise})
    assert output["label"] in ("unknown", "txt") or output["guess"] is None
    assert answered(backend, {"file": b"a"})["is_text"]


def test_what_is_no_file_is_refused(backend: FileTypeBackend) -> None:
    assert "empty" in refused(backend, {"file": b""})
    assert "base64" in refused(backend, {"file": "secret%%"})
    assert "neither bytes nor text" in refused(backend, {"file": 5})
    assert "one of them" in refused(backend, {"image": b"secret"})
    assert "not listed" in refused(backend, {"file_url": "https://secret.example/"})


@given(st.binary(min_size=1, max_size=3000))
@settings(max_examples=30, deadline=None)
def test_any_bytes_get_an_answer(backend: FileTypeBackend, content: bytes) -> None:
    answer = asked(backend, {"file": content})
    assert answer.error is None
    assert answer.confidence is not None
    assert answer.output["size"] == len(content)
