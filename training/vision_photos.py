"""The labelled photos that the vision models are measured on.

Those in tests/data/vision (photos.json) are checked in. The others, named in training/data/vision_boxes.json,
lie in the folder that the scripts are given: 20 ImageNet photos of the package foolbox, and photos of
scikit-image and scikit-learn. All boxes were drawn by hand for this project: label, left, top, right, bottom
as shares.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from training.vision_cards import session
from workers.library.vision.boxes import Found, overlap
from workers.library.vision.classify import pixels_of
from workers.library.vision.detect import Detector

KEPT = Path(__file__).parent.parent / "tests" / "data" / "vision"
OTHERS = Path(__file__).parent / "data" / "vision_boxes.json"
SAME = 0.5


class Photo(NamedTuple):
    """A photo, what there is to see on it, and the classes any of which is right."""

    image: Image.Image
    boxes: list[Found]
    classes: list[str]


class Count(NamedTuple):
    """How many things told are there, how many told are not, how many there are not told."""

    right: int
    wrong: int
    missed: int

    def __str__(self) -> str:
        told, there = self.right + self.wrong, self.right + self.missed
        return f"precision {self.right}/{told}, recall {self.right}/{there}"


def kept() -> list[Photo]:
    """The checked-in photos."""
    told: dict[str, Any] = json.loads((KEPT / "photos.json").read_text())
    return [_photo(KEPT / name, about["boxes"], about["classes"]) for name, about in told.items()]


def others(folder: Path) -> list[Photo]:
    """Those that are not."""
    return [_photo(folder / name, boxes, []) for name, boxes in json.loads(OTHERS.read_text()).items()]


def counted(detector: Detector, photos: Iterable[Photo], *, face: bool) -> Count:
    """What a detector finds of faces, or of all else; right is what overlaps one of its label by half."""
    right = wrong = missed = 0
    for photo in photos:
        left = [box for box in photo.boxes if (box.label == "face") == face]
        for one in detector.found(photo.image):
            if (one.label == "face") != face:
                continue
            same = [box for box in left if box.label == one.label and overlap(box, one) >= SAME]
            if same:
                left.remove(max(same, key=lambda box: overlap(box, one)))
                right += 1
            else:
                wrong += 1
        missed += len(left)
    return Count(right, wrong, missed)


def kept_right(model: bytes, labels: list[str]) -> list[int]:
    """Of the checked-in photos with a class: how many get a right one at once, in the first five, and all."""
    run = session(model)
    first = five = whole = 0
    for photo in kept():
        if photo.classes:
            scores = run.run(None, {"pixels": pixels_of(photo.image)[None]})[0][0]
            best = [labels[index] for index in np.argsort(-scores)[:5]]
            first += best[0] in photo.classes
            five += any(name in photo.classes for name in best)
            whole += 1
    return [first, five, whole]


def _photo(path: Path, boxes: list[Any], classes: list[str]) -> Photo:
    return Photo(
        Image.open(path).convert("RGB"), [Found(box[0], 1.0, *map(float, box[1:])) for box in boxes], classes
    )
