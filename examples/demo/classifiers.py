"""The intent and image capabilities: ONNX Runtime behind plain functions, one row or many.

In a batch a bad row comes back as the ValueError that says what is wrong with it; the others are answered.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from workers.library.nlp.intent import MODEL as INTENT

from .features import features, specs_of

MODELS = Path(__file__).parent / "models"
Answer = tuple[dict[str, Any], float | None]
Row = Answer | ValueError
T = TypeVar("T")
_MAX_TEXT = 10_000
_PIXELS = 784


def folder_of(name: str) -> Path:
    """Of all versions of a model: the local intent model is the library's, so that it is stored once."""
    return INTENT if name == "intent-local" else MODELS / name


@lru_cache(maxsize=8)
def load(name: str, version: str = "1") -> tuple[ort.InferenceSession, dict[str, Any]]:
    """Session (CPU, one thread) and card of a model folder; loaded once a process."""
    folder = folder_of(name) / version
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    return session, json.loads((folder / "card.json").read_text(encoding="utf-8"))


def _text(inputs: Mapping[str, Any]) -> str:
    text = inputs.get("text")
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"inputs.text must be a text that is not blank, got {type(text).__name__}")
    if len(text) > _MAX_TEXT:
        raise ValueError(f"inputs.text has {len(text)} characters; at most {_MAX_TEXT} are read")
    return text


def _pixels(inputs: Mapping[str, Any]) -> NDArray[np.float32]:
    given = inputs.get("pixels")
    if isinstance(given, bytes | bytearray | memoryview):
        raw = bytes(given)
        if len(raw) != _PIXELS * 4:
            raise ValueError(
                f"inputs.pixels has {len(raw)} bytes; 784 little-endian float32 are {_PIXELS * 4}"
            )
        values = np.frombuffer(raw, "<f4").astype(np.float32)
    elif isinstance(given, list | tuple):
        if len(given) != _PIXELS:
            raise ValueError(f"inputs.pixels has {len(given)} numbers; 28x28 are {_PIXELS}")
        for place, value in enumerate(given):
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ValueError(f"inputs.pixels[{place}] must be a number, got {type(value).__name__}")
        # Tested before the cast: an int such as 10**400 overflows float32 and float alike.
        if not all(0 <= value <= 1 and math.isfinite(value) for value in given):
            raise ValueError("inputs.pixels must be finite and lie in [0, 1]: divide grey values by 255")
        values = np.array(given, np.float32)
    else:
        raise ValueError(f"inputs.pixels must be 784 numbers or 3136 bytes, got {type(given).__name__}")
    if not (np.isfinite(values).all() and values.min() >= 0 and values.max() <= 1):
        raise ValueError("inputs.pixels must be finite and lie in [0, 1]: divide grey values by 255")
    return values


def _each(
    rows: Sequence[Mapping[str, Any]],
    read: Callable[[Mapping[str, Any]], T],
    answer: Callable[[list[T]], list[Answer]],
) -> list[Row]:
    """Reads every row, answers the good ones together, puts all back in their order."""
    found: list[Row] = []
    good: list[T] = []
    places: list[int] = []
    for place, inputs in enumerate(rows):
        try:
            good.append(read(inputs))
        except ValueError as error:
            found.append(error)
        else:
            found.append(({}, None))
            places.append(place)
    for place, done in zip(places, answer(good) if good else [], strict=True):
        found[place] = done
    return found


def _intents(name: str, texts: list[str]) -> list[Answer]:
    session, card = load(name)
    labels = card["labels"]
    counts = features(texts, specs_of(card))
    answers: list[Answer] = []
    for row in session.run(["probabilities"], {"features": counts})[0]:
        top = [(labels[k], round(float(row[k]), 6)) for k in np.argsort(-row, kind="stable")[:4]]
        rest = [{"intent": label, "probability": share} for label, share in top[1:]]
        answers.append(({"intent": top[0][0], "alternatives": rest}, top[0][1]))
    return answers


def _classes(images: list[NDArray[np.float32]]) -> list[Answer]:
    session, _ = load("crayfish")
    logits = session.run(["output"], {"input": np.stack(images).reshape(-1, 1, _PIXELS)})[0]
    exps = np.exp(logits - logits.max(axis=1, keepdims=True))
    scores = exps / exps.sum(axis=1, keepdims=True)
    return [
        ({"class": int(row.argmax()), "scores": [round(float(s), 6) for s in row]}, None) for row in scores
    ]


def _one(rows: list[Row]) -> Answer:
    row = rows[0]
    if isinstance(row, ValueError):
        raise row
    return row


def intent_local_batch(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """`intent_local` of many rows in one run of the model."""
    return _each(rows, _text, lambda texts: _intents("intent-local", texts))


def intent_cloud_batch(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """`intent_cloud` of many rows in one run of the model."""
    return _each(rows, _text, lambda texts: _intents("intent-cloud", texts))


def image_class_batch(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """`image_class` of many rows in one run of the model."""
    return _each(rows, _pixels, _classes)


def intent_local(inputs: Mapping[str, Any], params: Mapping[str, Any]) -> Answer:
    """{text} -> {intent, alternatives: [{intent, probability}] (3)}.

    Confidence: the top probability, before the calibration of the card that `app` applies.

    ValueError where `text` is absent, blank, no string or over 10,000 characters. `params` is not read.
    """
    return _one(intent_local_batch([inputs]))


def intent_cloud(inputs: Mapping[str, Any], params: Mapping[str, Any]) -> Answer:
    """As `intent_local`, by the larger model."""
    return _one(intent_cloud_batch([inputs]))


def image_class(inputs: Mapping[str, Any], params: Mapping[str, Any]) -> Answer:
    """{pixels} -> {class: 0..9, scores: 10 softmax shares}; confidence None: the model is not calibrated.

    `pixels`: 784 numbers in [0, 1], row by row, or the same as 3136 bytes of little-endian float32.
    ValueError for another length or type, NaN, infinity, or a value outside [0, 1]. `params` is not read.
    """
    return _one(image_class_batch([inputs]))
