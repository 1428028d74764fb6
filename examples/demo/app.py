"""The demo's capabilities as an Edgeway app: `edgeway worker --rules examples/demo/rules.json --side
local|cloud`. Its classifiers are its own; what reports and roads need is the library's."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import msgspec

from schemas.cards import Card
from workers import library
from workers.backends import Backend
from workers.backends.function import FunctionBackend
from workers.backends.onnx import OnnxBackend
from workers.backends.tensors import ClassPost
from workers.errors import BadInput
from workers.library.nlp.intent import FOLDER as INTENT
from workers.models.calibrated import Calibrated
from workers.models.cards import read_card

HERE = Path(__file__).resolve().parent
ROOT = str(HERE.parents[1])
if ROOT not in sys.path:
    # The rules name this file by its place, from whatever folder a worker is started.
    sys.path.insert(0, ROOT)

from examples.demo import capabilities  # noqa: E402

_PRICES = {"cloud/nlp/intent": 0.002, "cloud/finance/indicators": 0.01, "cloud/finance/chart": 0.005}
_PRICE_ELSEWHERE = 0.004
_OF_LIBRARY = (
    "local/finance/tokenize",
    "local/nlp/entities",
    "cloud/finance/tokenize",
    "cloud/nlp/entities",
    "cloud/finance/indicators",
    "cloud/finance/chart",
    "local/geo/gps_check",
    "cloud/traffic/forecast",
    "cloud/traffic/congestion",
)


def _models() -> dict[str, Path]:
    """The model folders by `SIDE/CAPABILITY`."""
    folders = [path.parent for path in sorted(HERE.glob("models/*/*/card.json"))] + [INTENT]
    cards = [(folder, read_card(folder)) for folder in folders]
    return {f"{card['side']}/{card['capability']}": folder for folder, card in cards}


_FOLDERS = _models()
_MODELS = {name: read_card(folder) for name, folder in _FOLDERS.items()}


def _price(name: str) -> float:
    return _PRICES.get(name, _PRICE_ELSEWHERE) if name.startswith("cloud/") else 0.0


def _card(name: str, **more: Any) -> Card:
    side, _, capability = name.partition("/")
    model = _MODELS.get(name, {})
    price = _price(name)
    about = (capabilities.CAPABILITIES[name].__doc__ or "").strip().partition("\n")[0]
    return Card(
        capability=capability,
        side="cloud" if side == "cloud" else "local",
        version=model.get("version", "1"),
        model=model.get("name", capability.replace("/", "-")),
        cost_per_call=price,
        max_cost=price,
        description=about,
        **more,
    )


def _one(function: capabilities.Function) -> Callable[[Any, Any], Any]:
    """`function`, its refusals told to the caller in its own words: they never quote the payload."""

    def call(inputs: Mapping[str, Any], params: Mapping[str, Any]) -> Any:
        try:
            return function(inputs, params)
        except ValueError as error:
            raise BadInput(str(error)) from error

    return call


def _rows(function: capabilities.Batch) -> Callable[[Any], Any]:
    def call(rows: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> list[Any]:
        answers = function([inputs for inputs, _params in rows])
        return [BadInput(str(answer)) if isinstance(answer, ValueError) else answer for answer in answers]

    return call


def _images() -> OnnxBackend:
    name = "local/vision/image_class"
    labels = _MODELS[name]["labels"]
    card = _card(name, model_type="onnx", max_batch=64)
    file = HERE / "models" / card.model / card.version / "model.onnx"
    return OnnxBackend(card, file, sources={"input": "pixels"}, post=ClassPost(labels, softmax=True))


def _functions() -> list[Backend]:
    backends: list[Backend] = []
    for name, function in capabilities.CAPABILITIES.items():
        if name == "local/vision/image_class":
            continue
        many = capabilities.BATCHES.get(name)
        form = _one(function) if many is None else _rows(many)
        backend = FunctionBackend(_card(name), form, batch=many is not None)
        folder = _FOLDERS.get(name)
        # The confidence as the card's calibration maps it, a new one within seconds of its being written.
        backends.append(backend if folder is None else Calibrated(backend, folder))
    return backends


def _of_library() -> list[Backend]:
    """Capabilities of the library, in the cloud at this demo's prices."""
    backends: list[Backend] = []
    for offered in library.offers():
        name = f"{offered.card.side}/{offered.card.capability}"
        if name in _OF_LIBRARY:
            price = _price(name)
            backend = copy(offered)
            backend.card = msgspec.structs.replace(offered.card, cost_per_call=price, max_cost=price)
            backends.append(backend)
    return backends


BACKENDS = [_images(), *_functions(), *_of_library()]
