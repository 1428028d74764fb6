"""`local/vision/classify`: what an image shows, of ImageNet's 1000 classes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray
from PIL import Image

from schemas.cards import Card
from schemas.rules import Rules
from workers.backends import Answer, Row
from workers.backends.onnx import OnnxBackend
from workers.backends.tensors import Feeds
from workers.errors import failure_of
from workers.library.fetch import Fetcher, Unreachable
from workers.library.image import params_of
from workers.library.pixels import picture
from workers.library.source import Source
from workers.library.vision.shipped import Shipped

SIDE = 224
CROP = 0.875
"""What is looked at: the middle square, its side so much of the shorter one's, as in training."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The params: how many classes to tell."""

    top: Annotated[int, Meta(ge=1, le=1000)] = 5


def pixels_of(image: Image.Image) -> NDArray[np.float32]:
    """What the model is given of an RGB image: the middle, 224 x 224 x 3, in (-1, 1)."""
    side = min(image.size) * CROP
    left, top = (image.width - side) / 2, (image.height - side) / 2
    middle = image.resize((SIDE, SIDE), Image.Resampling.BICUBIC, (left, top, left + side, top + side))
    return (np.asarray(middle, np.float32) - 127.0) / 128.0


class Classes:
    """The model's scores as `{"label", "classes": [{"label", "index", "score"}]}`, the likeliest first, the
    confidence the first one's score.
    """

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = tuple(labels)

    def __call__(self, outputs: Feeds, rows: Sequence[Row]) -> list[Answer]:
        return [self._answer(outputs["scores"][at], row) for at, row in enumerate(rows)]

    def _answer(self, scores: NDArray[np.float32], row: Row) -> Answer:
        best = np.argsort(-scores, kind="stable")[: params_of(row.params, Wanted).top]
        told = [
            {"label": self.labels[index], "index": int(index), "score": round(float(scores[index]), 6)}
            for index in best
        ]
        return Answer({"label": told[0]["label"], "classes": told}, min(1.0, float(scores[best[0]])))


MODEL = Shipped("efficientnet-lite0", "1")


def labels_of(model: Shipped = MODEL) -> tuple[str, ...]:
    """The names of the classes in their order."""
    return tuple(json.loads((model.folder / "labels.json").read_text()))


class ClassifyBackend(OnnxBackend):
    """Images of one batch go through the model together; one that cannot be read fails alone."""

    threads = 2

    def __init__(self, model: Shipped = MODEL, *, fetcher: Fetcher | None = None) -> None:
        about = model.about
        card = Card(
            capability="vision/classify",
            side="local",
            version=model.version,
            model=model.name,
            model_type="onnx",
            max_batch=8,
            cacheable=True,
            licence=about["licence"],
            source=about["source"],
            quality=about["quality"],
            description="What an image shows, of ImageNet's 1000 classes.",
        )
        self._source = Source("image", fetcher)
        super().__init__(card, model.folder / "model.onnx", post=Classes(labels_of(model)))

    def prepare(self, rules: Rules) -> Callable[[], None]:
        """What makes it follow `rules`."""
        return self._source.adopting(rules)

    def infer(self, rows: Sequence[Row]) -> list[Answer]:
        seen = [self._seen(row) for row in rows]
        sound = [one for one in seen if isinstance(one, Row)]
        answers = iter(super().infer(sound) if sound else ())
        return [next(answers) if isinstance(one, Row) else one for one in seen]

    def _seen(self, row: Row) -> Row | Answer:
        """A row for the model, or what the caller is told at once."""
        try:
            params_of(row.params, Wanted)
            pixels = pixels_of(picture(self._source.raw(row.inputs)))
        except Unreachable as error:
            return self._source.told(error, self.card.capability)
        except ValueError as error:
            return Answer(error=failure_of(error, self.card.capability))
        return Row({"pixels": np.ascontiguousarray(pixels, "<f4").tobytes()}, row.params)
