"""Predicts from a request's text whether the local answer will be accepted, before anything runs.

Two small linear models over hashed words, word pairs, word starts and ends, and the text's length: one says
how likely such texts are accepted; the other, where labels were there to train it, is a sketch of the local
model, and its doubt says more. Only the head of a text is read, so that a long one costs no more than a short
one.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streams.router.errors import PredictorError

MAX_BYTES = 300_000
"""A predictor's file is no larger."""
MAX_CHARS = 300
MAX_WORDS = 20
"""So much of a text is read: that takes 50 us."""
FORMAT = 1
Floats = NDArray[np.float32]
_WORD = re.compile(r"[^\W_]+(?:'\w+)?|[?!$€£%]")
_DIGIT = re.compile(r"\d")


class Predictor(Protocol):
    """What the router asks."""

    def expected(self, inputs: Mapping[str, Any]) -> float | None:
        """The chance in [0, 1] that the local answer reaches the threshold; None where these inputs say
        nothing."""


@dataclass(frozen=True, slots=True)
class TextPredictor:
    """`weights` by bucket, float32 [buckets]; `sketch` [buckets, labels] and its `offsets` [labels], None
    where there were no labels; `slope` weighs the log-odds of the sketch's first label against its second.

    The text is `inputs[field]`.
    """

    weights: Floats
    bias: float
    field: str = "text"
    slope: float = 0.0
    sketch: Floats | None = None
    offsets: Floats | None = None

    def expected(self, inputs: Mapping[str, Any]) -> float | None:
        """As the Protocol says; None where the field is absent, no text, or blank."""
        text = inputs.get(self.field)
        if type(text) is not str:
            return None
        found = grams(text)
        if not found:
            return None
        odds = self.odds(found)
        return 1.0 / (1.0 + math.exp(-odds)) if odds > -700 else 0.0

    def odds(self, hashes: list[int]) -> float:
        """The log-odds of acceptance."""
        places = np.array(hashes)
        share = 1.0 / math.sqrt(len(hashes))
        odds = self.bias + float(self.weights[places % len(self.weights)].sum()) * share
        if self.sketch is not None and self.offsets is not None:
            odds += self.slope * lead(
                self.sketch[places % len(self.sketch)].sum(axis=0) * share + self.offsets
            )
        return odds


def grams(text: str) -> list[int]:
    """The distinct hashes of a text, each below 2**32, in a fixed order; none of a blank one."""
    words = _WORD.findall(text[:MAX_CHARS].lower())
    if not words:
        return []
    digits = len(_DIGIT.findall(text, 0, MAX_CHARS))
    found = [f"n{min(len(words), 40) // 3}", f"l{len(text).bit_length()}", f"d{digits.bit_length()}"]
    words = words[:MAX_WORDS]
    found += words
    found += [word[:3] + "<" for word in words if len(word) > 3]
    found += [">" + word[-3:] for word in words if len(word) > 3]
    found += [f"{a} {b}" for a, b in zip(["", *words], [*words, ""], strict=True)]
    crc = zlib.crc32
    return [crc(gram.encode("utf-8", "replace")) for gram in dict.fromkeys(found)]


def lead(scores: Floats) -> float:
    """How far the first score is ahead of the second."""
    second, first = np.partition(scores, -2)[-2:]
    return float(first - second)


def load_predictor(path: str | Path) -> TextPredictor:
    """The predictor of a file that `save_predictor` wrote.

    Raises:
        PredictorError: it is not there, too large, or none.
    """
    place = Path(path)
    try:
        if place.stat().st_size > MAX_BYTES:
            raise PredictorError(f"is larger than {MAX_BYTES} bytes")
        with np.load(place, allow_pickle=False) as held:
            return _of(json.loads(str(held["about"])), held)
    except OSError as error:
        raise PredictorError(f"predictor {place} cannot be read: {error.strerror or error}") from error
    except PredictorError as error:
        raise PredictorError(f"predictor {place} {error}; train it anew") from error
    except Exception as error:  # half a file: BadZipFile, zlib.error and whatever else numpy lets through
        raise PredictorError(
            f"predictor {place} is none; write one with `edgeway models predictor`"
        ) from error


def save_predictor(path: str | Path, predictor: TextPredictor) -> None:
    """Write it: int8 weights with one scale a table, about one byte a weight."""
    about = {
        "format": FORMAT,
        "bias": predictor.bias,
        "field": predictor.field,
        "slope": predictor.slope,
    }
    tables = {"weights": predictor.weights}
    if predictor.sketch is not None and predictor.offsets is not None:
        tables["sketch"] = predictor.sketch
    held: dict[str, Any] = {}
    for name, table in tables.items():
        scale = float(np.abs(table).max() or 1.0) / 127
        held[name] = np.round(table / np.float32(scale)).astype(np.int8)
        held[f"{name}_scale"] = np.array(scale)
    if "sketch" in tables:
        held["offsets"] = predictor.offsets
    with Path(path).open("wb") as file:
        np.savez_compressed(file, about=np.array(json.dumps(about, sort_keys=True)), **held)


def _of(about: dict[str, Any], held: Mapping[str, Any]) -> TextPredictor:
    if about.get("format") != FORMAT:
        raise PredictorError(f"is of another format than {FORMAT}")
    weights = _table(held, "weights", 1)
    sketch = _table(held, "sketch", 2) if "sketch" in held else None
    offsets = held["offsets"].astype(np.float32) if sketch is not None else None
    if sketch is not None and (offsets is None or offsets.shape != sketch.shape[1:] or len(offsets) < 2):
        raise PredictorError("holds a sketch without its offsets")
    bias, slope = float(about["bias"]), float(about["slope"])
    if not (math.isfinite(bias) and math.isfinite(slope)):
        raise PredictorError("holds an infinity")
    return TextPredictor(weights, bias, str(about["field"]), slope, sketch, offsets)


def _table(held: Mapping[str, Any], name: str, dimensions: int) -> Floats:
    stored, scale = held[name], float(held[f"{name}_scale"])
    if stored.dtype != np.int8 or stored.ndim != dimensions or not stored.size or not math.isfinite(scale):
        raise PredictorError(f"holds no {name}")
    table: Floats = stored.astype(np.float32) * np.float32(scale)
    return table
