"""The object stores of one process, shared by its roles."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile

from edgeway.errors import UsageError
from edgeway.roles.process import Process
from streams.claims import ClaimError, Objects, open_objects
from streams.settings import Settings


def objects_for(process: Process) -> Objects:
    """The one `Objects` of `process`, by its settings; empty where they name no store. It is closed after all
    that writes to it.

    Raises:
        UsageError: a store that cannot be opened.
    """
    known: Objects | None = process.shared.get("objects")
    if known is not None:
        return known
    objects = process.shared["objects"] = opened(process.settings)
    process.outlet.in_cloud = objects.is_cloud

    async def close_last() -> None:
        # By now every role has named what it ends with, and they write to the end.
        process.after.append(objects.close)

    process.before.append(close_last)
    return objects


def opened(settings: Settings) -> Objects:
    """The stores that the settings name. Asks nobody yet.

    Raises:
        UsageError: one cannot be opened.
    """
    try:
        return open_objects(settings.objects, settings.cloud_objects)
    except ClaimError as error:
        raise UsageError(f"--objects, --cloud-objects: {error}") from error


def with_objects(stack: contextlib.AsyncExitStack, settings: Settings) -> Settings:
    """The settings of `up`: where they name no store a folder below `data`, or a temporary one that goes with
    `stack`."""
    if settings.objects is not None:
        return settings
    if settings.data is not None:
        folder = settings.data.absolute() / "objects"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return dataclasses.replace(settings, objects=folder.as_uri())
    made = stack.enter_context(tempfile.TemporaryDirectory(prefix="edgeway-objects-"))
    return dataclasses.replace(settings, objects=f"file://{made}")
