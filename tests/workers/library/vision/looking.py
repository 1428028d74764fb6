"""What the tests of the vision capabilities share."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from PIL import Image

from workers.backends import Answer, Backend, Row

DATA = Path(__file__).parents[3] / "data" / "vision"
CAT = (DATA / "cat.jpg").read_bytes()


def photo(name: str) -> bytes:
    return (DATA / name).read_bytes()


def told(name: str) -> Any:
    return json.loads((DATA / name).read_text(encoding="utf-8"))


def png(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def asked(backend: Backend, inputs: dict[str, Any], **params: Any) -> Answer:
    (answer,) = backend.infer([Row(inputs, params)])
    return answer


def answered(backend: Backend, inputs: dict[str, Any], **params: Any) -> Any:
    answer = asked(backend, inputs, **params)
    assert answer.error is None, answer.error
    return answer.output


def refused(backend: Backend, inputs: dict[str, Any], **params: Any) -> str:
    answer = asked(backend, inputs, **params)
    assert answer.error is not None
    assert answer.error.code == "bad_input", answer.error
    assert "secret" not in answer.error.message
    return answer.error.message


def bomb() -> bytes:
    """A few kilobytes that say 36 million pixels."""
    return png(Image.new("1", (6000, 6000)))


BAD: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, "one of them"),
    ({"image": CAT, "image_url": "https://secret.example/"}, "one of them"),
    ({"image": b""}, "none of"),
    ({"image": b"secret"}, "none of"),
    ({"image": CAT[:3000]}, "damaged"),
    ({"image": "secret%%"}, "base64"),
    ({"image": 17}, "neither bytes nor text"),
    ({"image": ["secret"]}, "neither bytes nor text"),
    ({"image": bomb()}, "pixels"),
    ({"image_url": "https://secret.example/cat.png"}, "not listed"),
    ({"image_url": 3}, "no text"),
)
"""Inputs that every capability on an image refuses, and a word of how."""
