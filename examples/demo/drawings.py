"""Pictures of clothes drawn by rule: 28x28 grey values in [0, 1], light on black, as the Crayfish model
expects.

They stand in for photographs in the demo. They measure no accuracy: nobody photographed or labelled them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Mask = NDArray[Any]
IMAGES_PER_SHAPE = 4

_ROWS, _COLUMNS = np.mgrid[0:28, 0:28].astype(np.float32)


def _box(left: float, top: float, right: float, bottom: float) -> Mask:
    inside: Mask = (_COLUMNS >= left) & (_COLUMNS <= right) & (_ROWS >= top) & (_ROWS <= bottom)
    return inside


def _wedge(top: float, bottom: float, narrow: float, wide: float) -> Mask:
    half = narrow + (wide - narrow) * (_ROWS - top) / (bottom - top)
    inside: Mask = (np.abs(_COLUMNS - 13.5) <= half) & (_ROWS >= top) & (_ROWS <= bottom)
    return inside


def _shirt(j: float) -> Mask:
    neck = (_COLUMNS - 13.5) ** 2 + (_ROWS - 3) ** 2 < 6
    sleeves = _box(2, 4, 25, 10 + j)
    shirt: Mask = (_box(8 - j, 3, 19 + j, 25) | sleeves) & ~neck
    return shirt


def _trousers(j: float) -> Mask:
    return _box(8 - j, 2, 19 + j, 26) & ~(_box(13 - j / 2, 9, 14 + j / 2, 26))


def _dress(j: float) -> Mask:
    return _wedge(2, 11, 3 + j / 2, 3) | _wedge(11, 26, 3, 7 + j)


def _bag(j: float) -> Mask:
    ring = (_COLUMNS - 13.5) ** 2 + (_ROWS - 11) ** 2
    bag: Mask = _box(3, 11 - j, 24, 24) | ((ring < 49) & (ring > 25) & (_ROWS < 11))
    return bag


def _boot(j: float) -> Mask:
    return _box(14, 4 - j, 23, 24) | _box(3 + j, 16, 23, 24)


_DRAW: dict[str, Callable[[float], Mask]] = {
    "shirt": _shirt,
    "trousers": _trousers,
    "dress": _dress,
    "bag": _bag,
    "boot": _boot,
}
SHAPES = tuple(_DRAW)


def draw(shape: str, number: int) -> Floats:
    """One picture, shape [28, 28]; the same shape and number always give the same picture."""
    rng = np.random.default_rng([SHAPES.index(shape), number])
    mask = _DRAW[shape](float(rng.uniform(0, 2)))
    grey = rng.uniform(0.5, 0.85) + 0.08 * rng.standard_normal((28, 28))
    return np.where(mask, np.clip(grey, 0.05, 1), 0).round(3).astype(np.float32)
