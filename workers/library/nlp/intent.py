"""`local/nlp/intent`: which of 77 intents of bank customers an English question has.

The model of the demo, made by `examples.demo.train` from Banking77; its confidence is calibrated by its card.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from schemas.cards import Card
from workers.backends import Backend, Row
from workers.backends.function import FunctionBackend
from workers.errors import BadInput, LoadError
from workers.library.nlp.given import text_of
from workers.library.nlp.hashed import FeatureSpec, features, specs_of
from workers.models.calibrated import Calibrated
from workers.models.cards import read_card

if TYPE_CHECKING:
    import onnxruntime as ort

MODEL: Final = Path(__file__).parent / "models" / "intent"
FOLDER: Final = MODEL / "1"
MOST_CHARACTERS: Final = 10_000
_SHOWN: Final = 4

_INPUT: Final = {
    "type": "object",
    "properties": {"text": {"type": "string", "maxLength": MOST_CHARACTERS}, "query": {"type": "string"}},
}
_OUTPUT: Final = {
    "type": "object",
    "required": ["intent", "alternatives"],
    "properties": {
        "intent": {"type": "string"},
        "alternatives": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"intent": {"type": "string"}, "probability": {"type": "number"}},
            },
        },
    },
}


def intent_backend() -> Backend:
    """The model behind the calibration of its card."""
    told = read_card(FOLDER)
    tested = next(figure for figure in told["figures"] if figure["data"] == "banking77_test.csv")
    card = Card(
        capability="nlp/intent",
        side="local",
        version=told["version"],
        model=told["name"],
        input_schema=_INPUT,
        output_schema=_OUTPUT,
        max_batch=32,
        description="Which of 77 intents of a bank's customers a question has (English).",
        cacheable=True,
        licence="Apache-2.0; trained on Banking77 (CC-BY-4.0, PolyAI)",
        source=told["trained_on"]["source"],
        quality=(
            f"Banking77 test, {tested['questions']} questions: accuracy {tested['accuracy']},"
            f" ECE {tested['ece']}; of the {tested['coverage_at_threshold']:.1%} with confidence"
            f" {tested['threshold']} or more {tested['accuracy_at_threshold']:.1%} are right."
            " English only: it knows no other subject and says so by low confidence alone"
        ),
    )
    return Calibrated(FunctionBackend(card, _intents, batch=True, load=_model), FOLDER)


@cache
def _model() -> tuple[ort.InferenceSession, tuple[FeatureSpec, ...], list[str]]:
    import onnxruntime as ort

    told = read_card(FOLDER)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    file = FOLDER / "model.onnx"
    try:
        session = ort.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise LoadError(f"{file} cannot be loaded: {type(error).__name__}") from error
    specs = specs_of(told)
    session.run(["probabilities"], {"features": features(["Where is my card?"], specs)})
    return session, specs, told["labels"]


def _intents(rows: Sequence[Row]) -> list[Any]:
    """A row's answer, or the BadInput that says what is wrong with it."""
    session, specs, labels = _model()
    found: list[Any] = [_read(row) for row in rows]
    good = [place for place, text in enumerate(found) if isinstance(text, str)]
    if not good:
        return found
    counts = features([found[place] for place in good], specs)
    for place, shares in zip(good, session.run(["probabilities"], {"features": counts})[0], strict=True):
        best = np.argsort(-shares, kind="stable")[:_SHOWN]
        rest = [{"intent": labels[k], "probability": round(float(shares[k]), 6)} for k in best[1:]]
        found[place] = ({"intent": labels[best[0]], "alternatives": rest}, float(shares[best[0]]))
    return found


def _read(row: Row) -> str | BadInput:
    given = [row.inputs.get(key, "") for key in ("text", "query")]
    if not all(isinstance(text, str) for text in given):
        return BadInput("inputs.text and inputs.query are texts")
    try:
        return text_of(given[0], given[1], MOST_CHARACTERS)
    except BadInput as error:
        return error
