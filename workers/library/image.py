"""`local/image/preprocess`: an image as the tensor that a vision model takes, or as a smaller image."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from schemas.cards import Card
from schemas.messages import Failure
from schemas.rules import Rules
from workers.backends import Answer
from workers.backends.function import FunctionBackend
from workers.errors import BadInput
from workers.library.fetch import Allowed, Fetcher, Unreachable
from workers.library.pixels import Form, converted

NAME = "image/preprocess"
MOST_SIDE = 4096
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


class ImageBackend(FunctionBackend):
    """Decodes, turns upright, resizes and converts; fetches `image_url` from the hosts of the rules.

    With `wanted` the capability `name` does that alone, whatever the request's params say.
    """

    threads = 2

    def __init__(
        self, name: str = NAME, wanted: Wanted | None = None, *, fetcher: Fetcher | None = None
    ) -> None:
        self._fetcher = fetcher or Fetcher()
        self._form = None if wanted is None else _form(wanted)
        card = Card(
            capability=name,
            side="local",
            version="1",
            model="image-preprocess",
            max_batch=8,
            description="An image as a tensor or a smaller image.",
        )
        super().__init__(card, self._answer_to)

    def prepare(self, rules: Rules) -> Callable[[], None]:
        """What makes it follow `rules`."""
        allowed = Allowed(rules.hosts)

        def adopt() -> None:
            self._fetcher.allowed = allowed

        return adopt

    def _answer_to(self, inputs: dict[str, Any], params: dict[str, Any]) -> Any:
        form = self._form or _form(_wanted(params))
        try:
            raw = self._raw(inputs)
        except Unreachable as error:
            return Answer(
                error=Failure(
                    code="backend_error", message=f"{self.card.capability}: inputs.image_url: {error}"
                )
            )
        return converted(raw, form)

    def _raw(self, inputs: dict[str, Any]) -> bytes:
        given, url = inputs.get("image"), inputs.get("image_url")
        if (given is None) == (url is None):
            raise BadInput("give inputs.image (bytes, base64 or a data URL) or inputs.image_url: one of them")
        if given is not None:
            return _bytes(given)
        if not isinstance(url, str):
            raise BadInput("inputs.image_url is no text")
        if url.startswith("data:"):
            return _bytes(url)
        try:
            return self._fetcher.get(url)
        except BadInput as error:
            raise BadInput(f"inputs.image_url: {error}") from error


def _bytes(given: Any) -> bytes:
    if isinstance(given, bytes | bytearray | memoryview):
        return bytes(given)
    if not isinstance(given, str):
        raise BadInput("inputs.image is neither bytes nor text")
    if given.startswith("data:"):
        about, comma, given = given.partition(",")
        if not comma or not about.endswith(";base64"):
            raise BadInput("inputs.image is a data URL without base64")
    try:
        return base64.b64decode("".join(given.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadInput("inputs.image is no base64") from error


def _wanted(params: dict[str, Any]) -> Wanted:
    try:
        return msgspec.convert(params, Wanted)
    except msgspec.ValidationError as error:
        text = str(error)
        # msgspec quotes an enum's wrong value, and an unknown field's name.
        place = text.partition(" - at ")[2].strip("`").replace("$", "params", 1)
        told = text.partition(" - at ")[0] if text.startswith("Expected `") else "not allowed here"
        raise BadInput(f"{place or 'params'}: {told}") from error


def _form(wanted: Wanted) -> Form:
    channels = 3 if wanted.mode == "rgb" else 1
    mean, std = (value if isinstance(value, tuple) else (value,) for value in (wanted.mean, wanted.std))
    if len(mean) not in (1, channels) or len(std) not in (1, channels) or not all(std):
        raise BadInput("params.mean and params.std have one number, or one a channel; no std is 0")
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
