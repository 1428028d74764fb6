"""`local/image/ocr`: the text in an image, English and Chinese; and the same as a reader for privacy.

{"privacy": {"detectors": [..., "images:workers.library.vision.ocr:reader"]}}
"""

from __future__ import annotations

import math
import threading
from typing import Any

import msgspec
import numpy as np
from PIL import Image

from schemas.bounds import Ratio
from schemas.cards import Card
from workers.errors import BadInput
from workers.library.fetch import Fetcher
from workers.library.image import params_of
from workers.library.pixels import picture
from workers.library.source import SourceBackend
from workers.library.vision.reading import Line, in_order, sureness, text_of

MOST_SIDE = 2000
"""Pixels of the longer side that are read; a larger image is made smaller first."""
SEEK_SIDE = 960
"""Pixels of the longer side in which lines are sought; they are read in the larger image."""
LEAST_SIDE = 32
"""What the models need of the shorter side."""
UNSURE = 0.7
"""Below, the image is read turned as well: upside down, then on its sides."""
QUALITY = (
    "wrong characters: 0.00% on 8 rendered pages in English and Chinese that are checked in, 0.40% on a"
    " photographed page, 0.04% on 60 more rendered ones"
)
CARD = Card(
    capability="image/ocr",
    side="local",
    version="1",
    model="pp-ocr-v6-small",
    max_batch=4,
    cacheable=True,
    licence="Apache-2.0",
    source="PP-OCRv6 small of PaddleOCR as ONNX, in the wheel of rapidocr 3.10",
    quality=QUALITY,
    description="The text in an image, English and Chinese, line by line.",
)


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The params: lines that are less sure than `min_score` are left out."""

    min_score: Ratio = 0.5


class Engine:
    """The models; they are loaded once, at the first use, and used by one thread at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._models: Any = None

    def load(self) -> None:
        """Read the models and run them once."""
        self.lines(Image.new("RGB", (64, 64), "white"))

    def lines(self, image: Image.Image) -> list[Line]:
        """What stands in an RGB image, in no order."""
        # The models' own test for upside down lines turned upright ones of a photographed page.
        best: list[Line] = []
        for turns in (0, 2, 1, 3):
            lines = self._seen(image.rotate(90 * turns, expand=True)) if turns else self._seen(image)
            if not best or (sureness(lines) or 0.0) > (sureness(best) or 0.0):
                best = [_turned(line, turns, image.size) for line in lines]
            if (sureness(best) or 1.0) >= UNSURE:
                break
        return best

    def _seen(self, image: Image.Image) -> list[Line]:
        # Its channels are taken as OpenCV has them.
        values = np.ascontiguousarray(np.asarray(_thick(image))[:, :, ::-1])
        with self._lock:
            if self._models is None:
                self._models = _loaded()
            found = self._models(values)
        if found.boxes is None or found.txts is None:
            return []
        return [
            _line(box, str(text), float(score), image.size)
            for box, text, score in zip(found.boxes, found.txts, found.scores, strict=True)
        ]


ENGINE = Engine()


class OcrBackend(SourceBackend):
    """Gives `{"text", "lines": [{"text", "box", "share", "score"}], "width", "height"}`; `box` is left, top,
    right, bottom in pixels, `share` the same as shares of the image. The confidence is the mean score a
    character, None where no text was found.
    """

    def __init__(self, engine: Engine = ENGINE, *, fetcher: Fetcher | None = None) -> None:
        self._engine = engine
        super().__init__(CARD, self._read, load=engine.load, fetcher=fetcher)

    def _read(self, raw: bytes, _: dict[str, Any], params: dict[str, Any]) -> Any:
        least = params_of(params, Wanted).min_score
        image = picture(raw)
        rows = in_order([line for line in self._engine.lines(image) if line.score >= least])
        lines = [line for row in rows for line in row]
        output = {
            "text": text_of(rows),
            "lines": [_told(line, image.size) for line in lines],
            "width": image.width,
            "height": image.height,
        }
        return output, sureness(lines)


class Reader:
    """Text in images for `streams.privacy`: every line there is, however unsure. None of what is no image
    that can be read."""

    name = "images:ocr"

    def __init__(self, engine: Engine = ENGINE) -> None:
        self._engine = engine

    def read(self, data: bytes, /) -> str | None:
        try:
            image = picture(data)
        except BadInput:
            return None
        return text_of(in_order(self._engine.lines(image)))


reader = Reader()


def _loaded() -> Any:
    import cv2
    from rapidocr import RapidOCR

    # A worker has its cores by its number of threads; OpenCV would take all there are for each call.
    cv2.setNumThreads(1)
    given = {
        "Global.log_level": "critical",
        "Global.text_score": 0.0,
        "Global.use_cls": False,
        "Global.max_side_len": MOST_SIDE,
        "Det.limit_type": "max",
        "Det.limit_side_len": SEEK_SIDE,
        # Lines together are as wide as the widest: more memory (700 MB for a page, not 500), no less time.
        "Rec.rec_batch_num": 1,
        "EngineConfig.onnxruntime.intra_op_num_threads": 1,
        "EngineConfig.onnxruntime.inter_op_num_threads": 1,
    }
    return RapidOCR(params=given)


def _thick(image: Image.Image) -> Image.Image:
    """The image, padded on the right and below where it would be too thin once made smaller."""
    least = math.ceil(LEAST_SIDE * max(1.0, max(image.size) / MOST_SIDE))
    if min(image.size) >= least:
        return image
    padded = Image.new("RGB", (max(least, image.width), max(least, image.height)), image.getpixel((0, 0)))
    padded.paste(image, (0, 0))
    return padded


def _line(box: Any, text: str, score: float, size: tuple[int, int]) -> Line:
    (left, top), (right, bottom) = np.min(box, axis=0), np.max(box, axis=0)
    sides = (max(0.0, left), max(0.0, top), min(float(size[0]), right), min(float(size[1]), bottom))
    a, b, c, d = (round(float(side), 1) for side in sides)
    return Line(a, b, c, d, text, min(1.0, max(0.0, score)))


def _turned(line: Line, turns: int, size: tuple[int, int]) -> Line:
    """Where a line of the image turned left by so many right angles stands in the image of that size."""
    left, top, right, bottom = line[:4]
    wide, high = size
    if turns == 1:
        left, top, right, bottom = wide - bottom, left, wide - top, right
    elif turns == 2:
        left, top, right, bottom = wide - right, high - bottom, wide - left, high - top
    elif turns == 3:
        left, top, right, bottom = top, high - right, bottom, high - left
    return Line(left, top, right, bottom, line.text, line.score)


def _told(line: Line, size: tuple[int, int]) -> dict[str, Any]:
    box = [line.left, line.top, line.right, line.bottom]
    share = [round(side / size[at % 2], 4) for at, side in enumerate(box)]
    return {"text": line.text, "box": box, "share": share, "score": round(line.score, 4)}
