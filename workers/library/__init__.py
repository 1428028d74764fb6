"""Ready-made local capabilities that prepare inputs for others, as an app: `"apps": ["workers.library"]`.

`text/clean`, `multimodal/align`, and `image/preprocess` where Pillow is installed (`edgeway[images]`).
"""

from __future__ import annotations

import logging
from importlib.util import find_spec

from workers.backends import Backend
from workers.library.align import align
from workers.library.text import clean

__all__ = ["align", "clean", "images"]

log = logging.getLogger(__name__)


def _images() -> list[Backend]:
    if find_spec("PIL") is None:
        log.warning("local/image/preprocess is not offered: it needs Pillow; install edgeway[images]")
        return []
    from workers.library.image import ImageBackend

    return [ImageBackend()]


images = _images()
