"""Decoding and converting images, by Pillow."""

from __future__ import annotations

import io
import struct
import warnings
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from workers.errors import BadInput

MAX_PIXELS = 25_000_000
"""Of a decoded image: a few kilobytes of PNG can say billions."""
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
"""Those that the web has; Pillow knows many more, whose decoders nobody watches."""
MAX_TENSOR_BYTES = 900_000
"""What is left of a record for it."""


class Form(NamedTuple):
    """What an image shall become; `mean` and `std` have one number, or one a channel."""

    width: int | None = None
    height: int | None = None
    fit: str = "stretch"
    gray: bool = False
    png: bool = False
    channels_first: bool = False
    invert: bool = False
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)


def converted(raw: bytes, form: Form) -> dict[str, Any]:
    """`{"pixels": little-endian float32 bytes, "shape": [...]}` or `{"image": PNG bytes}`, with `width` and
    `height`. Of an animation the first picture.

    Raises:
        BadInput: no image of FORMATS, a damaged one, or one with too many pixels, before or after.
    """
    image = _sized(_flat(_opened(raw), form.gray), form)
    if form.invert:
        image = ImageOps.invert(image)
    about = {"width": image.width, "height": image.height}
    if form.png:
        out = io.BytesIO()
        image.save(out, "PNG")
        return {"image": out.getvalue(), **about}
    size = image.width * image.height * len(image.getbands()) * 4
    if size > MAX_TENSOR_BYTES:
        raise BadInput(
            f"the tensor would have {size} bytes, and {MAX_TENSOR_BYTES} fit; give a width and height"
        )
    scaled = (np.asarray(image, dtype=np.float32) / 255.0).reshape(image.height, image.width, -1)
    values = (scaled - np.array(form.mean, np.float32)) / np.array(form.std, np.float32)
    if form.channels_first:
        values = values.transpose(2, 0, 1)
    return {"pixels": np.ascontiguousarray(values, "<f4").tobytes(), "shape": list(values.shape), **about}


def picture(raw: bytes) -> Image.Image:
    """The image as RGB, upright, on white where it is transparent.

    Raises:
        BadInput: as `converted`.
    """
    return _flat(_opened(raw), gray=False)


def _opened(raw: bytes) -> Image.Image:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            image: Image.Image = Image.open(io.BytesIO(raw), formats=FORMATS)
            if image.width * image.height > MAX_PIXELS:
                raise BadInput(f"the image has more than {MAX_PIXELS} pixels")
            image.load()
            return ImageOps.exif_transpose(image)
    except BadInput:
        raise
    except UnidentifiedImageError as error:
        raise BadInput(f"the image is none of {', '.join(FORMATS)}") from error
    except Image.DecompressionBombError as error:
        raise BadInput(f"the image has more than {MAX_PIXELS} pixels") from error
    except (OSError, SyntaxError, ValueError, KeyError, IndexError, struct.error) as error:
        raise BadInput("the image is damaged or cut short") from error


def _flat(image: Image.Image, gray: bool) -> Image.Image:
    """Gray or RGB, what is transparent on white."""
    if image.mode.startswith("I") or image.mode == "F":
        # 16 bits a pixel; a plain conversion cuts them off at 255 instead of scaling them.
        scaled = np.asarray(image, dtype=np.float32) / 257.0
        image = Image.fromarray(scaled.clip(0, 255).round().astype(np.uint8))
    if image.has_transparency_data:
        over = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", over.size, "white"), over)
    return image.convert("L" if gray else "RGB")


def _sized(image: Image.Image, form: Form) -> Image.Image:
    if form.width is None and form.height is None:
        return image
    width = form.width or max(1, round(image.width * (form.height or 1) / image.height))
    height = form.height or max(1, round(image.height * (form.width or 1) / image.width))
    if width * height > MAX_PIXELS:
        raise BadInput(f"an image of this shape would have more than {MAX_PIXELS} pixels at that size")
    size = (width, height)
    method = Image.Resampling.LANCZOS
    if form.fit == "contain":
        return ImageOps.pad(image, size, method, color=0)
    return ImageOps.fit(image, size, method) if form.fit == "cover" else image.resize(size, method)
