"""Images and files."""

from __future__ import annotations

import logging
from importlib.util import find_spec

from workers.backends import Backend

log = logging.getLogger(__name__)


def offers() -> list[Backend]:
    """What this group has to offer here; what needs a package not installed is left out and logged."""
    if find_spec("PIL") is None:
        log.warning("local/image/preprocess is not offered: it needs Pillow; install edgeway[images]")
        return []
    from workers.library.image import ImageBackend

    return [ImageBackend()]
