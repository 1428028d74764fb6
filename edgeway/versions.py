"""Which build this is."""

from __future__ import annotations

from importlib import metadata


def version() -> str:
    """The version of the installed package, `unreleased` where none is installed."""
    try:
        return metadata.version("edgeway")
    except metadata.PackageNotFoundError:
        return "unreleased"
