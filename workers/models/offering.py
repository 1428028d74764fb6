"""What the card of a model folder offers: the capability's card, and the backend that serves it.

`card.json` of a repository has `name`, `version`, `capability`, `side`, `model_type`, and as wanted `options`
(those of the backend's kind; paths relative to the version's folder), `labels`, `calibration`, and the fields
of `schemas.cards.Card` (`max_batch`, `max_wait_ms`, `licence`, `source`, `quality`, prices, schemas). Other
keys are for people.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from schemas.cards import Card
from schemas.errors import Malformed
from schemas.topics import capability_topic
from workers.backends import Backend, RemoteBackend
from workers.backends.limits import WRONG, is_sound
from workers.backends.registry import build
from workers.errors import LoadError
from workers.models.calibrated import Calibrated, CalibratedRemote
from workers.models.cards import read_card, statement_of
from workers.models.manifest import CARD

log = logging.getLogger(__name__)

MODEL = "model.onnx"
"""The file of an ONNX model whose options name none."""
REMOTE = frozenset({"openai", "open_inference", "http"})
_OWN = frozenset(Card.__struct_fields__) - {"model", "calibration", "calibrated"}
_NEEDED = ("name", "version", "capability", "side", "model_type")
_OTHER_NAMES = {"licence": "license", "description": "about"}


def card_of(document: Mapping[str, Any], where: str) -> Card:
    """The capability's card, as it is in the heartbeat.

    Raises:
        LoadError: a field that is missing or wrong; the text says which.
    """
    fields = {key: value for key, value in document.items() if key in _OWN}
    for name, other in _OTHER_NAMES.items():
        if name not in fields and isinstance(document.get(other), str):
            fields[name] = document[other]
    missing = [key for key in _NEEDED if not document.get(key)]
    if missing:
        raise LoadError(f"card {where} has no {', '.join(missing)}")
    kind = document["model_type"]
    if kind == "function" or kind not in (*REMOTE, "onnx"):
        known = ", ".join(("onnx", *sorted(REMOTE)))
        more = "; functions come from an app (--app)" if kind == "function" else ""
        raise LoadError(f"card {where}: model_type is {kind!r}; a repository holds {known}{more}")
    stated = statement_of(document)
    try:
        found = msgspec.convert({**fields, "model": document["name"]}, Card)
        capability_topic(found.side, found.capability)
    except (msgspec.ValidationError, Malformed, ValueError) as error:
        raise LoadError(f"card {where}: {error}") from error
    if not is_sound(found):
        raise LoadError(f"card {where}: {WRONG}")
    return msgspec.structs.replace(found, calibration=stated, calibrated=stated is not None)


def options_of(document: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The options of the backend, its files as paths below `folder`.

    Raises:
        LoadError: they are no object, or name a file that is not within the folder.
    """
    options = document.get("options") or {}
    if not isinstance(options, Mapping):
        raise LoadError(f"card {folder / CARD}: options is no JSON object")
    found = dict(options)
    if document.get("model_type") == "onnx":
        found["path"] = _within(folder, found.get("path", MODEL))
        if "labels" in document:
            found.setdefault("labels", document["labels"])
    for key, value in options.items():
        # A version may bring certificates along; a key's file lies elsewhere.
        if key == "ca_file" and isinstance(value, str) and (folder / value).is_file():
            found[key] = _within(folder, value)
    return found


def backend_of(folder: Path) -> Backend:
    """The backend of a version's folder, its confidence calibrated as the card says; not loaded yet.

    Raises:
        LoadError: the card or its options cannot be used.
    """
    document = read_card(folder)
    card = card_of(document, str(folder / CARD))
    options = options_of(document, folder)
    try:
        backend = build(card, options)
    except LoadError:
        raise
    except Exception as error:  # options of an odd kind, say
        raise LoadError(f"card {folder / CARD}: {type(error).__name__}: {error}") from error
    if not document.get("calibration"):
        return backend
    if isinstance(backend, RemoteBackend):
        return CalibratedRemote(backend, folder)
    return Calibrated(backend, folder)


def _within(folder: Path, path: object) -> str:
    if not isinstance(path, str) or not path:
        raise LoadError(f"card {folder / CARD}: options.path is no text; name the model's file")
    found = folder / path
    if Path(path).is_absolute() or not found.resolve().is_relative_to(folder.resolve()):
        raise LoadError(f"card {folder / CARD}: options name {path!r}, which is not within the folder")
    if not found.is_file():
        raise LoadError(f"card {folder / CARD}: options name {path!r}, which is not there")
    return str(found)
