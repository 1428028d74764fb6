"""What the groups offer here, and what they say of it."""

from __future__ import annotations

import asyncio
import base64
import importlib.util
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from schemas.rules import parse_rules
from tests.helpers.endpoint import Endpoint, Reply, endpoint
from tests.workers.library.vision.looking import BAD, CAT, asked, png, refused
from workers.backends import Backend, Row, RulesFollower
from workers.library import multimodal, vision

VISION = (
    *("image/preprocess", "vision/classify", "vision/detect", "vision/caption", "image_captioning"),
    *("image/ocr", "file/type"),
)
ON_IMAGES = tuple(name for name in VISION if name not in ("file/type", "image/preprocess"))


@pytest.fixture(scope="module")
def offered() -> dict[str, Backend]:
    found = {backend.card.capability: backend for backend in vision.offers()}
    for backend in found.values():
        asyncio.run(backend.load())
    return found


@pytest.fixture
def server() -> Iterator[Endpoint]:
    yield from endpoint()


def test_whoever_lacks_all_packages_is_told_of_each_capability(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(vision, "find_spec", lambda name: None)
    with caplog.at_level(logging.WARNING):
        assert vision.offers() == []
    for name in VISION:
        assert name in caplog.text
    for extra in ("images", "ocr", "files"):
        assert f"edgeway[{extra}]" in caplog.text


def test_all_are_offered_locally_with_licence_source_and_quality(offered: dict[str, Backend]) -> None:
    assert set(offered) == set(VISION)
    several = {backend.card.capability: backend for backend in multimodal.offers()}
    assert {"multimodal/align", "multimodal/fuse"} <= set(several)
    for backend in (*offered.values(), several["multimodal/fuse"]):
        card = backend.card
        assert card.side == "local"
        assert card.licence, card.capability
        assert card.source, card.capability
        assert card.quality, card.capability


@pytest.mark.parametrize(
    ("missing", "left", "extra"),
    [
        ("PIL", {"file/type"}, "edgeway[images]"),
        ("rapidocr", set(VISION) - {"image/ocr"}, "edgeway[ocr]"),
        ("magika", set(VISION) - {"file/type"}, "edgeway[files]"),
    ],
)
def test_what_lacks_a_package_is_left_out_and_logged(
    missing: str,
    left: set[str],
    extra: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(vision, "find_spec", lambda name: None if name == missing else real(name))
    with caplog.at_level(logging.WARNING):
        assert {backend.card.capability for backend in vision.offers()} == left
    (said,) = [record.getMessage() for record in caplog.records]
    assert extra in said


def test_offering_loads_no_model() -> None:
    code = (
        "import sys; from workers.library import vision; vision.offers();"
        "print([name for name in ('cv2', 'rapidocr', 'magika') if name in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("name", ON_IMAGES)
@pytest.mark.parametrize(("inputs", "word"), BAD)
def test_bad_images_are_refused_clearly(
    name: str, inputs: dict[str, Any], word: str, offered: dict[str, Backend]
) -> None:
    assert word in refused(offered[name], inputs)


@pytest.mark.parametrize("name", ON_IMAGES)
@pytest.mark.parametrize("size", [(1, 1), (1, 300), (4000, 1)])
def test_the_smallest_and_the_thinnest_images_are_answered(
    name: str, size: tuple[int, int], offered: dict[str, Backend]
) -> None:
    assert asked(offered[name], {"image": png(Image.new("RGB", size, "teal"))}).error is None


@pytest.mark.parametrize("name", ON_IMAGES)
def test_every_way_to_give_an_image_gives_the_same(
    name: str, offered: dict[str, Backend], server: Endpoint
) -> None:
    backend = offered[name]
    assert isinstance(backend, RulesFollower)
    server.reply = lambda _: Reply(200, CAT)
    host = server.url.removeprefix("http://")
    backend.prepare(parse_rules(json.dumps({"tasks": {}, "hosts": [host]}).encode()))()
    text = base64.b64encode(CAT).decode()
    ways: list[dict[str, Any]] = [
        *({"image": CAT}, {"image": text}, {"image": f"data:image/jpeg;base64,{text}"}),
        {"image_url": f"{server.url}/cat.jpg"},
    ]
    answers = [asked(backend, way) for way in ways]
    assert all(answer.error is None for answer in answers), answers
    assert all(answer == answers[0] for answer in answers)
    server.reply = lambda _: Reply(503)
    failed = asked(backend, {"image_url": f"{server.url}/cat.jpg"}).error
    assert failed is not None
    assert failed.code == "backend_error"


def test_one_bad_image_of_a_batch_fails_alone(offered: dict[str, Backend]) -> None:
    rows = [Row({"image": CAT}, {}), Row({"image": b"no image"}, {}), Row({"image": CAT}, {})]
    for name in ON_IMAGES:
        first, bad, last = offered[name].infer(rows)
        assert first.error is None
        assert bad.error is not None
        assert last == first


def test_the_models_are_those_of_their_cards_and_small() -> None:
    import hashlib

    whole = 0
    for card in Path(vision.__file__).parent.glob("models/*/*/card.json"):
        for name, digest in json.loads(card.read_text(encoding="utf-8"))["sha256"].items():
            content = (card.parent / name).read_bytes()
            assert hashlib.sha256(content).hexdigest() == digest, name
            assert len(content) <= 6 * 1024 * 1024, name
            whole += len(content)
    assert 8_000_000 < whole < 10_000_000
