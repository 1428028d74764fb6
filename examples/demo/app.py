"""The demo's capabilities as an Edgeway app: `edgeway worker --rules examples/demo/rules.json --side
local|cloud`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from schemas.cards import Card
from workers.backends.function import FunctionBackend
from workers.backends.onnx import OnnxBackend
from workers.backends.tensors import ClassPost

HERE = Path(__file__).resolve().parent
ROOT = str(HERE.parents[1])
if ROOT not in sys.path:
    # The rules name this file by its place, from whatever folder a worker is started.
    sys.path.insert(0, ROOT)

from examples.demo import capabilities  # noqa: E402

_PRICES = {"cloud/nlp/intent": 0.002, "cloud/finance/indicators": 0.01, "cloud/finance/chart": 0.005}
_PRICE_ELSEWHERE = 0.004
_CALIBRATED = ("local/nlp/intent", "cloud/nlp/intent")


def _card(name: str, **more: Any) -> Card:
    side, _, capability = name.partition("/")
    price = _PRICES.get(name, _PRICE_ELSEWHERE) if side == "cloud" else 0.0
    about = (capabilities.CAPABILITIES[name].__doc__ or "").strip().partition("\n")[0]
    return Card(
        capability=capability,
        side="cloud" if side == "cloud" else "local",
        version="1",
        model=more.pop("model", capability.replace("/", "-")),
        cost_per_call=price,
        max_cost=price,
        calibrated=name in _CALIBRATED,
        description=about,
        **more,
    )


def _rows(function: Callable[[Sequence[Mapping[str, Any]]], Any]) -> Callable[[Any], Any]:
    return lambda rows: function([inputs for inputs, _params in rows])


def _images() -> OnnxBackend:
    folder = HERE / "models" / "crayfish" / "1"
    labels = json.loads((folder / "card.json").read_text(encoding="utf-8"))["labels"]
    card = _card("local/vision/image_class", model="crayfish", model_type="onnx", max_batch=64)
    return OnnxBackend(
        card, folder / "model.onnx", sources={"input": "pixels"}, post=ClassPost(labels, softmax=True)
    )


def _functions() -> list[FunctionBackend]:
    backends = []
    for name, function in capabilities.CAPABILITIES.items():
        if name == "local/vision/image_class":
            continue
        many = capabilities.BATCHES.get(name)
        form = function if many is None else _rows(many)
        backends.append(FunctionBackend(_card(name), form, batch=many is not None))
    return backends


BACKENDS = [_images(), *_functions()]
