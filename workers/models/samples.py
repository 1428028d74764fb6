"""Inputs for the check of a model whose owner gives none: numbers of the shapes that the model takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from schemas.cards import Card
from workers.errors import LoadError
from workers.models.check import Asked

ROWS = 3
FREE = 8
"""The size of a free dimension."""
MOST_NUMBERS = 2_000_000
"""So many numbers of a row at most; larger inputs would make the check larger than models."""


def generated(card: Card, options: Mapping[str, Any]) -> list[Asked]:
    """Rows for an ONNX model, the same ones each time: fractions in [0, 1), whole numbers 0 and 1.

    Raises:
        LoadError: the model cannot be read, or takes something else than numbers.
    """
    import onnxruntime as ort

    quiet = ort.SessionOptions()
    quiet.log_severity_level = 3
    try:
        session = ort.InferenceSession(str(options["path"]), quiet, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise LoadError(f"{card.capability}: cannot load the model: {error}") from error
    nodes = session.get_inputs()
    batch = nodes[0].shape[0] if nodes and nodes[0].shape else None
    rng = np.random.default_rng(0)
    sources = options.get("sources") or {}
    return [
        Asked({sources.get(node.name, node.name): _numbers(node, rng, card) for node in nodes})
        for _ in range(batch if isinstance(batch, int) else ROWS)
    ]


def _numbers(node: Any, rng: np.random.Generator, card: Card) -> Any:
    shape = [size if isinstance(size, int) and size > 0 else FREE for size in node.shape[1:]]
    if int(np.prod(shape, dtype=np.int64)) > MOST_NUMBERS or "string" in node.type:
        raise LoadError(
            f"{card.capability}: no inputs can be made up for {node.name!r} ({node.type} {node.shape}); give "
            "some with --check FILE"
        )
    if "float" in node.type or "double" in node.type:
        return rng.random(shape).round(4).tolist()
    whole = rng.integers(0, 2, shape)
    # A mask of nothing but zeros divides by zero in many models.
    whole.reshape(-1)[:1] = 1
    return whole.tolist()
