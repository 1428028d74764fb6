"""Images and files."""

from __future__ import annotations

import logging
from importlib.util import find_spec

from workers.backends import Backend

log = logging.getLogger(__name__)

IMAGES = "image/preprocess, vision/classify, vision/detect, vision/caption, image_captioning, image/ocr"


def offers() -> list[Backend]:
    """What this group has to offer here; what needs a package not installed is left out and logged."""
    found: list[Backend] = []
    pictures = _there("PIL", IMAGES, "Pillow", "images")
    if pictures:
        found += _images()
    if _there("rapidocr", "image/ocr", "rapidocr", "ocr") and pictures:
        from workers.library.vision.ocr import OcrBackend

        found.append(OcrBackend())
    if _there("magika", "file/type", "magika", "files"):
        from workers.library.vision.filetype import FileTypeBackend

        found.append(FileTypeBackend())
    return found


def _images() -> list[Backend]:
    from workers.library.image import ImageBackend
    from workers.library.vision.caption import NAMES, CaptionBackend, Captioner
    from workers.library.vision.classify import ClassifyBackend
    from workers.library.vision.detect import DetectBackend

    captioner = Captioner()
    captions = [CaptionBackend(name, captioner) for name in NAMES]
    return [ImageBackend(), ClassifyBackend(), DetectBackend(), *captions]


def _there(module: str, names: str, package: str, extra: str) -> bool:
    if find_spec(module) is not None:
        return True
    log.warning("not offered here: %s (local); install edgeway[%s], which brings %s", names, extra, package)
    return False
