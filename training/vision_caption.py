"""Measures `vision/caption` on the photos of training/vision_photos.py; nothing is trained.

    python -m training.vision_caption FOLDER

A caption is right if the first thing it names is there: a class of the photo, or a thing with a box on it.
"""

from __future__ import annotations

import io
import json
import re
import sys
import time
from pathlib import Path

from training.vision_cards import write
from training.vision_photos import OTHERS, Photo, kept, others
from workers.library.vision.caption import THRESHOLD, Captioner
from workers.library.vision.classify import labels_of
from workers.models.calibration import figures


def judged(photos: list[Photo]) -> tuple[list[tuple[float, bool]], float]:
    """For each photo the confidence and whether the caption is right, without reading words; and milliseconds
    of processor a photo.
    """
    captioner = Captioner()
    captioner.load()
    pairs: list[tuple[float, bool]] = []
    began = time.process_time()
    for photo in photos:
        out = io.BytesIO()
        photo.image.save(out, "PNG")
        output, confidence = captioner.caption(out.getvalue(), {}, {"words": False, "threshold": 0.0})
        true = set(photo.classes) | {box.label for box in photo.boxes}
        pairs.append((confidence, output["subjects"][0] in true))
    return pairs, (time.process_time() - began) * 1000 / len(photos)


def told(pairs: list[tuple[float, bool]]) -> list[int]:
    """How many captions are right, how many are told, of how many."""
    some = [right for confidence, right in pairs if confidence >= THRESHOLD]
    return [sum(some), len(some), len(pairs)]


def named(folder: Path) -> list[Photo]:
    """The photos that are not checked in, those of ImageNet with their class."""
    labels = labels_of()
    return [
        photo._replace(classes=[labels[int(match[1])]] if (match := re.search(r"_(\d+)\.jpg$", name)) else [])
        for name, photo in zip(json.loads(OTHERS.read_text()), others(folder), strict=True)
    ]


def main(folder: Path) -> None:
    pairs, spent = judged(kept() + named(folder))
    few, _ = judged(kept())
    right, said, whole = told(pairs)
    stated = figures([confidence for confidence, _ in pairs], [float(good) for _, good in pairs], THRESHOLD)
    write(
        "caption",
        "1",
        {},
        {
            "capability": "vision/caption",
            "side": "local",
            "licence": "Apache-2.0 (models: see vision/classify, vision/detect, image/ocr)",
            "source": "composed from vision/classify, vision/detect and image/ocr; no model of its own",
            "quality": (
                f"on {whole} photos labelled by hand it told {said} captions, the first thing named right in"
                f" {right}, and was unsure of {whole - said}; the least confidence was chosen on them too"
            ),
            "kept": told(few),
            "calibration": {
                "method": "none",
                "ece": round(stated.ece, 4),
                "threshold": THRESHOLD,
                "coverage": round(stated.coverage, 4),
                "accuracy": round(stated.accuracy, 4),
                "samples": whole,
            },
            "trained_by": "measured by training/vision_caption.py",
        },
    )
    print(right, said, whole, stated, round(spent), "ms a photo")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
