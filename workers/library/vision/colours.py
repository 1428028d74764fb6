"""What colours an image has, in words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

HUES = (
    *((15, "red"), (40, "orange"), (66, "yellow"), (160, "green"), (195, "turquoise"), (260, "blue")),
    *((290, "purple"), (335, "pink"), (361, "red")),
)
"""Upper ends in degrees."""
BLACK, WHITE, PALE, DIM, SIDE = 0.18, 0.85, 0.18, 0.55, 64
MOSTLY = 0.25
"""The share of an image that a colour must have to be named."""
FEW_TONES = 200
"""Of 32768; drawings, signs and screens have fewer, photos more."""


def named(image: Image.Image) -> list[str]:
    """The colours of at least a quarter of an RGB image each, the commonest first, two at most."""
    values = np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BOX), np.float32) / 255.0
    names = _names(values.reshape(-1, 3))
    found, counts = np.unique(names, return_counts=True)
    order = sorted(zip(-counts, found, strict=True))
    return [str(name) for count, name in order if -count >= MOSTLY * names.size][:2]


def is_gray(image: Image.Image) -> bool:
    """Whether an RGB image is in black and white."""
    values = np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BOX), np.int16)
    return int((values.max(axis=2) - values.min(axis=2)).max()) <= 12


def is_photo(image: Image.Image) -> bool:
    """Whether an RGB image has as many tones as photos have."""
    values = np.asarray(image.resize((2 * SIDE, 2 * SIDE), Image.Resampling.BILINEAR), np.uint16) >> 3
    tones = (values[:, :, 0] << 10) | (values[:, :, 1] << 5) | values[:, :, 2]
    distinct = np.unique(tones).size
    return bool(distinct > FEW_TONES or (is_gray(image) and distinct > 20))


def _names(values: NDArray[np.float32]) -> NDArray[np.str_]:
    top, low = values.max(axis=1), values.min(axis=1)
    spread = top - low
    red, green, blue = values.T
    safe = np.maximum(spread, 1e-6)
    hue = np.select(
        [top == red, top == green],
        [(green - blue) / safe % 6, (blue - red) / safe + 2],
        (red - green) / safe + 4,
    )
    names = np.select([(hue * 60 < end) for end, _ in HUES], [name for _, name in HUES], "red")
    pale = spread / np.maximum(top, 1e-6) < PALE
    brown = np.isin(names, ("orange", "red", "yellow")) & (top < DIM) & ~pale
    names = np.where(brown, "brown", names)
    names = np.where(pale, "gray", names)
    names = np.where(pale & (top > WHITE), "white", names)
    return np.where(top < BLACK, "black", names)
