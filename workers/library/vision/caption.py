"""`local/vision/caption`: a sentence about an image, or that this baseline is unsure.

It is composed from what `vision/classify`, `vision/detect` and, where it is installed, `image/ocr` find. As
`image_captioning` it serves a task of that name, as the original's rules have it: an answer below its
`local_threshold` goes on to its `fallback_url`.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import msgspec

from schemas.bounds import Ratio
from schemas.cards import Card
from workers.library.fetch import Fetcher
from workers.library.image import params_of
from workers.library.pixels import picture
from workers.library.source import SourceBackend
from workers.library.vision.classify import MODEL, labels_of, pixels_of
from workers.library.vision.colours import is_gray, is_photo, named
from workers.library.vision.detect import DETECTOR, Detector, told
from workers.library.vision.ocr import ENGINE, Engine
from workers.library.vision.reading import in_order, sureness, text_of
from workers.library.vision.shipped import MODELS, Shipped
from workers.library.vision.wording import Seen, said
from workers.models.cards import read_card, statement_of

NAMES = ("vision/caption", "image_captioning")
THRESHOLD = 0.6
"""Below, it is unsure."""
LEAST_TEXT = 0.85
LEAST_LETTERS = 3


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The params: below `threshold` the answer is unsure; `words` says whether text in the image is read."""

    threshold: Ratio = THRESHOLD
    words: bool = True


class Captioner:
    """The models together; without `rapidocr` no text is read."""

    def __init__(
        self, model: Shipped = MODEL, detector: Detector = DETECTOR, engine: Engine = ENGINE
    ) -> None:
        self._model, self._detector, self._engine = model, detector, engine
        self._labels = labels_of(model)
        self._reads = find_spec("rapidocr") is not None

    def load(self) -> None:
        """Read the models and run them once."""
        self._model.load()
        self._detector.load()
        if self._reads:
            self._engine.load()

    def caption(self, raw: bytes, _: dict[str, Any], params: dict[str, Any]) -> Any:
        """`{"caption", "unsure", "subjects", "objects", "text"}` and the confidence."""
        wanted = params_of(params, Wanted)
        image = picture(raw)
        things = self._detector.found(image)
        scores = self._model.run(pixels_of(image)[None])["scores"][0].tolist()
        lines = self._engine.lines(image) if wanted.words and self._reads else []
        lines = [line for line in lines if line.score >= LEAST_TEXT and len(line.text) >= LEAST_LETTERS]
        text = text_of(in_order(lines))
        seen = Seen(
            scores=scores,
            labels=self._labels,
            things=things,
            text=text,
            text_score=sureness(lines) or 0.0,
            lines=len(lines),
            colours=named(image),
            gray=is_gray(image),
            photo=is_photo(image),
            width=image.width,
            height=image.height,
        )
        caption, subjects, confidence = said(seen)
        unsure = confidence < wanted.threshold
        output = {
            "caption": None if unsure else caption,
            "unsure": unsure,
            "subjects": [] if unsure else subjects,
            "objects": [told(one, image.size) for one in things],
            "text": text,
        }
        return output, round(confidence, 4)


class CaptionBackend(SourceBackend):
    """One name of the baseline."""

    def __init__(self, name: str, captioner: Captioner, *, fetcher: Fetcher | None = None) -> None:
        about = read_card(MODELS / "caption" / "1")
        card = Card(
            capability=name,
            side="local",
            version="1",
            model="caption-of-parts",
            max_batch=4,
            cacheable=True,
            calibrated=True,
            calibration=statement_of(about),
            licence=about["licence"],
            source=about["source"],
            quality=about["quality"],
            description="A sentence about an image, or that this baseline is unsure.",
        )
        super().__init__(card, captioner.caption, load=captioner.load, fetcher=fetcher)
