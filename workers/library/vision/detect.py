"""`local/vision/detect`: things of 20 kinds and faces in an image, with boxes."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray
from PIL import Image

from schemas.bounds import Ratio
from schemas.cards import Card
from workers.errors import BadInput
from workers.library.fetch import Fetcher
from workers.library.image import params_of
from workers.library.pixels import picture
from workers.library.source import SourceBackend
from workers.library.vision.boxes import Found, around, suppressed
from workers.library.vision.faces import faces
from workers.library.vision.shipped import Shipped

LABELS = (
    *("background", "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *("dining table", "dog", "horse", "motorbike", "person", "potted plant", "sheep", "sofa", "train", "tv"),
)
"""The classes of PASCAL VOC in their order."""
KNOWN = frozenset((*LABELS[1:], "face"))
SIDE = 257
STEP = 2
LEAST_AREA = 0.004
LEAST_SCORE = 0.7
LEAST_FACE = 0.75
MOST_OVERLAP = 0.5
MOST_FACE_OVERLAP = 0.3
GRAY = (127, 127, 127)


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The params: only these `labels` (all by default), only what is at least so sure, at most so many."""

    labels: tuple[str, ...] | None = None
    min_score: Ratio | None = None
    most: Annotated[int, Meta(ge=1, le=100)] = 50


class Detector:
    """The two models: a map of classes, whose pieces get boxes, and faces."""

    def __init__(self) -> None:
        self.things = Shipped("deeplab-v3", "1")
        self.faces = Shipped("blazeface", "1")

    def load(self) -> None:
        """Read both models and run them once."""
        self.things.load()
        self.faces.load()

    def found(self, image: Image.Image, wanted: Wanted = Wanted()) -> list[Found]:  # noqa: B008  # frozen
        """What is in an RGB image, the surest first.

        Raises:
            BadInput: a label that no model knows.
        """
        names = KNOWN if wanted.labels is None else frozenset(wanted.labels)
        if not names <= KNOWN:
            raise BadInput(f"params.labels has a name that is none of {', '.join(sorted(KNOWN))}")
        found: list[Found] = []
        if names - {"face"}:
            least = LEAST_SCORE if wanted.min_score is None else wanted.min_score
            found += suppressed(
                around(self._map(image), LABELS, least_area=LEAST_AREA, least_score=least), MOST_OVERLAP
            )
        if "face" in names:
            least = LEAST_FACE if wanted.min_score is None else max(wanted.min_score, 0.5)
            found += suppressed(faces(self.faces, image, least), MOST_FACE_OVERLAP)
        return sorted((one for one in found if one.label in names), key=lambda one: -one.score)[: wanted.most]

    def _map(self, image: Image.Image) -> NDArray[np.float32]:
        """The classes' probabilities on the image, at most 129 places a side."""
        scale = SIDE / max(image.size)
        size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
        # Stretched to a square, a page of text was taken for a bottle.
        square = Image.new("RGB", (SIDE, SIDE), GRAY)
        square.paste(image.resize(size, Image.Resampling.BILINEAR), (0, 0))
        outputs = self.things.run(np.asarray(square, np.float32)[None] / 127.5 - 1.0)
        logits = outputs["classes"][0, : size[1] : STEP, : size[0] : STEP]
        powers = np.exp(logits - logits.max(axis=2, keepdims=True))
        return np.asarray(powers / powers.sum(axis=2, keepdims=True), np.float32)


DETECTOR = Detector()


class DetectBackend(SourceBackend):
    """Gives `{"objects": [{"label", "score", "box", "share"}], "counts", "width", "height"}`; `box` is left,
    top, right, bottom in pixels, `share` the same as shares. The confidence is that of the least sure object
    told, None where there is none: of what was not found it says nothing.
    """

    def __init__(self, detector: Detector = DETECTOR, *, fetcher: Fetcher | None = None) -> None:
        self._detector = detector
        about, faces_about = detector.things.about, detector.faces.about
        card = Card(
            capability="vision/detect",
            side="local",
            version=detector.things.version,
            model="deeplab-v3+blazeface",
            max_batch=4,
            cacheable=True,
            licence=about["licence"],
            source=f"{about['source']}; {faces_about['source']}",
            quality=f"{about['quality']}; {faces_about['quality']}",
            description="Things of 20 kinds and faces in an image, with boxes.",
        )
        super().__init__(card, self._detect, load=detector.load, fetcher=fetcher)

    def _detect(self, raw: bytes, _: dict[str, Any], params: dict[str, Any]) -> Any:
        image = picture(raw)
        found = self._detector.found(image, params_of(params, Wanted))
        counts: dict[str, int] = {}
        for one in found:
            counts[one.label] = counts.get(one.label, 0) + 1
        objects = [told(one, image.size) for one in found]
        output = {"objects": objects, "counts": counts, "width": image.width, "height": image.height}
        return output, min((one.score for one in found), default=None)


def told(one: Found, size: tuple[int, int]) -> dict[str, Any]:
    """A thing as the answer has it."""
    share = [round(side, 4) for side in one[2:]]
    box = [round(side * size[at % 2], 1) for at, side in enumerate(share)]
    return {"label": one.label, "score": round(one.score, 4), "box": box, "share": share}
