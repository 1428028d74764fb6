"""`local/image/preprocess`: an image as the tensor that a vision model takes, or as a smaller image."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from schemas.cards import Card
from workers.errors import BadInput
from workers.library.fetch import Fetcher
from workers.library.pixels import Form, converted
from workers.library.source import SourceBackend

W = TypeVar("W", bound=msgspec.Struct)

NAME = "image/preprocess"
MOST_SIDE = 4096
MOST_MEAN, LEAST_STD = 1e6, 1e-6
Side = Annotated[int, Meta(ge=1, le=MOST_SIDE)]


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The params; others are another step's.

    Without `width` and `height` the size stays; with one of them the shape does. `mean` and `std` (one
    number, or one a channel) apply to values in [0, 1]; `invert` before them.
    """

    width: Side | None = None
    height: Side | None = None
    fit: Literal["stretch", "contain", "cover"] = "stretch"
    mode: Literal["rgb", "gray"] = "rgb"
    format: Literal["float32", "png"] = "float32"
    layout: Literal["hwc", "chw"] = "hwc"
    invert: bool = False
    mean: float | Annotated[tuple[float, ...], Meta(min_length=1, max_length=3)] = 0.0
    std: float | Annotated[tuple[float, ...], Meta(min_length=1, max_length=3)] = 1.0


class ImageBackend(SourceBackend):
    """Decodes, turns upright, resizes and converts; fetches `image_url` from the hosts of the rules.

    With `wanted` the capability `name` does that alone, whatever the request's params say.
    """

    def __init__(
        self, name: str = NAME, wanted: Wanted | None = None, *, fetcher: Fetcher | None = None
    ) -> None:
        form = None if wanted is None else _form(wanted)
        card = Card(
            capability=name,
            side="local",
            version="1",
            model="image-preprocess",
            max_batch=8,
            description="An image as a tensor or a smaller image.",
            licence="Apache-2.0 (this project); Pillow: MIT-CMU",
            source="no model: Pillow decodes and resizes",
            quality="exact: no model is involved",
        )
        super().__init__(
            card,
            lambda raw, _, params: converted(raw, form or _form(params_of(params, Wanted))),
            fetcher=fetcher,
        )


def params_of(params: dict[str, Any], wanted: type[W]) -> W:
    """The params as `wanted` has them; others are another step's.

    Raises:
        BadInput: one of another type or size; the message names it and never quotes it.
    """
    try:
        return msgspec.convert(params, wanted)
    except msgspec.ValidationError as error:
        text = str(error)
        # msgspec quotes an enum's wrong value, and an unknown field's name.
        place = text.partition(" - at ")[2].strip("`").replace("$", "params", 1)
        told = text.partition(" - at ")[0] if text.startswith("Expected `") else "not allowed here"
        raise BadInput(f"{place or 'params'}: {told}") from error


def _form(wanted: Wanted) -> Form:
    channels = 3 if wanted.mode == "rgb" else 1
    mean, std = (value if isinstance(value, tuple) else (value,) for value in (wanted.mean, wanted.std))
    if len(mean) not in (1, channels) or len(std) not in (1, channels):
        raise BadInput("params.mean and params.std have one number, or one a channel")
    # NaN is within no bounds; beyond these the tensor would hold infinities.
    if not all(abs(each) <= MOST_MEAN for each in mean) or not all(abs(each) >= LEAST_STD for each in std):
        raise BadInput(
            f"params.mean is at most {MOST_MEAN:g}, and params.std at least {LEAST_STD:g}: they are of [0, 1]"
        )
    return Form(
        width=wanted.width,
        height=wanted.height,
        fit=wanted.fit,
        gray=wanted.mode == "gray",
        png=wanted.format == "png",
        channels_first=wanted.layout == "chw",
        invert=wanted.invert,
        mean=mean,
        std=std,
    )
