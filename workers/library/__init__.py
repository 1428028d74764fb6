"""Ready-made local capabilities, as an app: `"apps": ["workers.library"]`.

Each group gives what it has to offer; what needs a package not installed is left out, and the log says
which extra brings it.
"""

from __future__ import annotations

from importlib import import_module

from workers.backends import Backend

GROUPS = ("nlp", "vision", "geo", "traffic", "finance", "multimodal")


def offers() -> list[Backend]:
    """The backends of every group."""
    return [backend for group in GROUPS for backend in import_module(f"{__name__}.{group}").offers()]
