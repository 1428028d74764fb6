"""Faces by BlazeFace: its anchors, and what its numbers mean."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from workers.library.vision.boxes import Found
from workers.library.vision.shipped import Shipped

SIDE = 128
GRIDS = ((16, 2), (8, 6))
"""Cells a side, and anchors a cell."""
TILE = 0.6
"""The sides of the parts that are looked at besides the whole: small faces are seen in no other way."""


def anchors() -> NDArray[np.float32]:
    """The anchors' centres, as shares."""
    centres = [
        ((x + 0.5) / cells, (y + 0.5) / cells)
        for cells, each in GRIDS
        for y in range(cells)
        for x in range(cells)
        for _ in range(each)
    ]
    return np.array(centres, np.float32)


ANCHORS = anchors()


def faces(model: Shipped, image: Image.Image, least: float) -> list[Found]:
    """The faces in an RGB image that are at least so sure, in no order and with what overlaps."""
    wide, high = image.size
    part = (TILE * wide, TILE * high)
    corners = [(0.0, 0.0, float(wide), float(high))]
    corners += [
        (x, y, x + part[0], y + part[1]) for x in (0.0, wide - part[0]) for y in (0.0, high - part[1])
    ]
    views = [_square(image, box) for box in corners]
    outputs = model.run(np.stack([pixels for pixels, _ in views]))
    scores = 1.0 / (1.0 + np.exp(-outputs["scores"][:, :, 0].astype(np.float64).clip(-80, 80)))
    found = []
    for (_, (left, top, side)), sure, boxes in zip(views, scores, outputs["boxes"], strict=True):
        for at in np.nonzero(sure >= least)[0]:
            x, y, w, h = boxes[at, :4] / SIDE
            x, y = x + ANCHORS[at, 0], y + ANCHORS[at, 1]
            sides = (left + (x - w / 2) * side) / wide, (top + (y - h / 2) * side) / high
            ends = (left + (x + w / 2) * side) / wide, (top + (y + h / 2) * side) / high
            found.append(
                Found("face", float(sure[at]), *(float(min(1.0, max(0.0, one))) for one in sides + ends))
            )
    return [one for one in found if one.area > 0]


def _square(
    image: Image.Image, box: tuple[float, float, float, float]
) -> tuple[NDArray[np.float32], tuple[float, float, float]]:
    """A part of the image on a black square, and that square's left, top and side in the image."""
    left, top, right, bottom = box
    side = max(right - left, bottom - top)
    scale = SIDE / side
    size = (max(1, round((right - left) * scale)), max(1, round((bottom - top) * scale)))
    square = Image.new("RGB", (SIDE, SIDE))
    at = ((SIDE - size[0]) // 2, (SIDE - size[1]) // 2)
    square.paste(image.resize(size, Image.Resampling.BILINEAR, box), at)
    values = np.asarray(square, np.float32) / 127.5 - 1.0
    return values, (left - at[0] / scale, top - at[1] / scale, side)
