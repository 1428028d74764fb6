"""The ONNX backend keeps the contract, plain and with a calibration around it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from schemas.cards import Card
from tests.helpers.shared_data import crayfish
from tests.workers.backends.contract import SECRET, BackendContract, Subject
from workers.backends import Backend, Row
from workers.backends.onnx import OnnxBackend
from workers.models.calibrated import Calibrated

CARD = Card(capability="vision/digits", side="local", version="1", model="m", model_type="onnx", max_batch=8)


def image(n: int) -> Any:
    return np.random.default_rng(n).random(784, dtype=np.float32)


def expected(n: int) -> Any:
    session = onnxruntime.InferenceSession(str(crayfish()), providers=["CPUExecutionProvider"])
    return session.run(None, {"input": image(n).reshape(1, 1, 784)})[0][0]


def subject_of(make: Callable[[Path], Backend], missing: Path) -> Subject:
    return Subject(
        make=lambda: make(crayfish()),
        good=lambda n: Row({"pixels": image(n).tobytes() if n % 2 else image(n).tolist()}, {}),
        right=lambda n, output: bool(np.allclose(output["output"], expected(n), rtol=1e-4, atol=1e-6)),
        bad=Row({"pixels": [SECRET] * 784}, {}),
        huge=Row({"pixels": [0.5] * 1_000_000}, {}),
        unloadable=lambda: make(missing / "none.onnx"),
    )


def plain(path: Path) -> Backend:
    return OnnxBackend(CARD, path, sources={"input": "pixels"})


class TestOnnx(BackendContract):
    @pytest.fixture
    def subject(self, tmp_path: Path) -> Subject:
        return subject_of(plain, tmp_path)


class TestCalibratedOnnx(BackendContract):
    @pytest.fixture
    def subject(self, tmp_path: Path) -> Subject:
        place = tmp_path / "card.json"
        named = {"name": "m", "version": "1", "capability": "vision/digits", "side": "local", "labels": []}
        place.write_text(json.dumps(named), encoding="utf-8")
        return subject_of(lambda path: Calibrated(plain(path), place), tmp_path)
