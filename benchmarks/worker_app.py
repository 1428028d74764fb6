"""The Crayfish model, and any other named by the environment, as a worker's app."""

from __future__ import annotations

import os
from pathlib import Path

from schemas.cards import Card
from workers.backends.onnx import OnnxBackend

CRAYFISH = (
    Path(__file__).resolve().parents[1] / "examples" / "demo" / "models" / "crayfish" / "1" / "model.onnx"
)
CAPABILITY = "bench/model"

model = OnnxBackend(
    Card(
        capability=CAPABILITY,
        side="local",
        version="1",
        model="bench",
        model_type="onnx",
        max_batch=int(os.environ.get("BENCH_MAX_BATCH", "32")),
    ),
    os.environ.get("BENCH_MODEL", CRAYFISH),
    sources={os.environ.get("BENCH_INPUT", "input"): "x"},
)
