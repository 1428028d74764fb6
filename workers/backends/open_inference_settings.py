"""The options of Open Inference backends, read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from schemas.cards import Card
from workers.backends.open_inference_answers import NamedPost
from workers.backends.open_inference_grpc import GrpcWire
from workers.backends.open_inference_model import Wanted
from workers.backends.open_inference_rest import RestWire
from workers.backends.open_inference_wire import READY_S, Place, Wire
from workers.backends.remote_keys import bearer
from workers.backends.remote_options import Options
from workers.backends.remote_wire import USUAL, Limits
from workers.backends.tensors import ClassPost, Post
from workers.errors import LoadError

LIMITS = USUAL._replace(answer_bytes=8 * 1024 * 1024)
"""Tensors are larger than texts."""
MOST_ROWS = 1024


class Settings(NamedTuple):
    """What the options come to."""

    wire: Wire
    wanted: Wanted
    post: Post
    limits: Limits
    ready_s: float


def settings_of(card: Card, options: Mapping[str, Any]) -> Settings:
    """The settings.

    Raises:
        LoadError: options that are unknown, of another type, or do not go together.
    """
    read = Options(card.capability, "open_inference", options)
    url, model = read.text("url"), read.text("model") or card.model
    if url is None or not model:
        raise LoadError(f"{card.capability}: an open_inference backend needs the options url and model")
    place = Place(model, read.text("model_version") or "")
    keys = bearer(read.text("key_env") or "", read.text("key_file") or "")
    limits = read.limits(LIMITS)
    binary = read.flag("binary") if options.get("binary") is not None else None
    outputs, post = _post(card, read, options)
    wanted = Wanted(
        read.mapping("inputs"),
        outputs,
        read.flag("batched", usual=True),
        read.count("rows_per_call", MOST_ROWS, 1, MOST_ROWS),
    )
    ready_s = read.number("ready_s", READY_S, 0.0, 600.0)
    read.end()
    wire: Wire
    if url.startswith(("grpc://", "grpcs://")):
        wire = GrpcWire(card.capability, url, place, limits, keys)
    else:
        wire = RestWire(card.capability, url, place, limits, keys, binary)
    return Settings(wire, wanted, post, limits, ready_s)


def _post(card: Card, read: Options, options: Mapping[str, Any]) -> tuple[tuple[str, ...], Post]:
    """The outputs that are asked for, and what makes answers of them."""
    labels, output = read.texts("labels"), read.text("output")
    softmax, scores = read.flag("softmax"), read.flag("scores", usual=True)
    scalars, confidence = read.flag("scalars"), read.text("confidence")
    given = options.get("outputs")
    if isinstance(given, Mapping):
        names = read.texts_by_name("outputs")
    else:
        names = {name: name for name in read.texts("outputs")}
    classes = [name for name in ("labels", "softmax", "scores", "output") if options.get(name) is not None]
    plain = [name for name in ("outputs", "scalars", "confidence") if options.get(name) is not None]
    if classes and plain:
        raise LoadError(f"{card.capability}: {plain[0]} does not go with {classes[0]}, of classifiers")
    if classes:
        post = ClassPost(labels or None, softmax=softmax, scores=scores, source=output)
        return (output,) if output else (), post
    also = [confidence] if confidence and names and confidence not in names else []
    return (*names, *also), NamedPost(names, scalars=scalars, confidence=confidence)
