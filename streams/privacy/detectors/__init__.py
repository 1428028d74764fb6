"""The built-in detectors, in the order of what they cost. Each is loaded when an examiner first needs it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from streams.privacy.finding import Detector, TextReader
from streams.strangers import RAISED

BUILT_IN = ("formats", "ids", "phones", "secrets", "addresses", "names")
"""Their names, cheapest first."""

IMAGES = "images"
"""The detector that keeps images local which nothing could read; not on by itself."""


class UnknownDetector(ValueError):
    """A detector that is not built in and cannot be loaded."""


def load(name: str) -> Detector | TextReader:
    """The detector `name`: built in, a user's `module:attribute`, or `images:module:attribute`, a TextReader.

    Raises:
        UnknownDetector: there is none.
    """
    if name in BUILT_IN or name == IMAGES:
        found = importlib.import_module(f"streams.privacy.detectors.{name}").detector()
        assert isinstance(found, Detector)
        return found
    if ":" not in name:
        raise UnknownDetector(
            f"there is no detector {name!r}; use {', '.join((*BUILT_IN, IMAGES))},"
            " or module:attribute of your own"
        )
    if name.startswith(f"{IMAGES}:"):
        return _reader(name)
    own = _loaded(name, name)
    if not isinstance(own, Detector):
        raise UnknownDetector(f"detector {name!r} has no `name` and `find(text)`")
    return own


def _reader(name: str) -> TextReader:
    reader = _loaded(name, name.removeprefix(f"{IMAGES}:"))
    if not isinstance(reader, TextReader):
        raise UnknownDetector(f"detector {name!r} has no `name` and `read(data)`")
    return reader


def _loaded(name: str, place: str) -> object:
    module, _, attribute = place.partition(":")
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        # A console script has no working directory on its path, and the module usually lies there.
        sys.path.insert(0, here)
    try:
        found: object = getattr(importlib.import_module(module), attribute)
        return found() if isinstance(found, type) else found
    except (ImportError, AttributeError, ValueError) as error:
        raise UnknownDetector(f"detector {name!r} cannot be loaded: {error}") from error
    except KeyboardInterrupt:
        raise
    except RAISED as error:
        raise UnknownDetector(f"detector {name!r} fails to load: {type(error).__name__}: {error}") from error
