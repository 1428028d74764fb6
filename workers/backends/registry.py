"""Backends by kind: a new one is a file `workers/backends/KIND.py` with a function `build(card, options)`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from typing import Any, Protocol, cast

import workers.backends
from schemas.cards import Card
from workers.backends import Backend
from workers.errors import LoadError


class Builder(Protocol):
    """Makes a backend of a card and the options of its kind (not loaded yet)."""

    def __call__(self, card: Card, options: Mapping[str, Any]) -> Backend: ...


def kinds() -> tuple[str, ...]:
    """The kinds that have a file here, sorted."""
    found = (module.name for module in pkgutil.iter_modules(workers.backends.__path__))
    return tuple(sorted(name for name in found if name != "registry" and hasattr(_module(name), "build")))


def build(card: Card, options: Mapping[str, Any] | None = None) -> Backend:
    """The backend of `card.model_type`.

    Raises:
        LoadError: no such kind in this build, or options that it refuses.
    """
    if card.model_type not in kinds():
        known = ", ".join(kinds())
        raise LoadError(f"{card.capability}: no backend of kind {card.model_type!r}; this build has {known}")
    return cast("Builder", _module(card.model_type).build)(card, options or {})


def _module(name: str) -> Any:
    return importlib.import_module(f"workers.backends.{name}")
