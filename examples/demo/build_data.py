"""Rebuilds the sample of questions, the drawn images and the sample requests.

`python -m examples.demo.build_data` from the repository root; nothing here is random but by seed.
"""

import csv
import json
import random
from collections import defaultdict
from pathlib import Path

import numpy as np
import onnxruntime as ort

from .drawings import IMAGES_PER_SHAPE, SHAPES, draw
from .samples import requests

HERE = Path(__file__).parent
SAMPLE = 500
SEED = 77


def sample(rows: list[dict[str, str]], size: int = SAMPLE, seed: int = SEED) -> list[dict[str, str]]:
    """`size` rows spread evenly over the categories, in a shuffled order fixed by the seed."""
    rng = random.Random(seed)
    groups: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in rows:
        groups[row["category"]].append(row)
    names = sorted(groups)
    for name in names:
        rng.shuffle(groups[name])
    rng.shuffle(names)
    picked: list[dict[str, str]] = []
    depth = 0
    while len(picked) < size:
        layer = [groups[name][depth] for name in names if depth < len(groups[name])]
        if not layer:
            raise ValueError(f"only {len(picked)} rows, {size} wanted: give a smaller size")
        picked += layer[: size - len(picked)]
        depth += 1
    rng.shuffle(picked)
    return picked


def write_sample() -> None:
    with (HERE / "data" / "banking77_test.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with (HERE / "data" / "banking77_test_500.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["text", "category"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(sample(rows))


def write_images() -> None:
    """Drawn pictures with the class the model itself gives: an expectation for plumbing, not a label."""
    model = HERE / "models" / "crayfish" / "1" / "model.onnx"
    session = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    images = []
    for shape in SHAPES:
        for number in range(IMAGES_PER_SHAPE):
            pixels = draw(shape, number)
            scores = session.run(None, {session.get_inputs()[0].name: pixels.reshape(1, 1, 784)})[0][0]
            values = [round(float(value), 4) for value in pixels.ravel()]
            images.append(
                {
                    "id": f"{shape}-{number}",
                    "drawn": shape,
                    "expected_class": int(np.argmax(scores)),
                    "pixels": values,
                }
            )
    text = json.dumps(
        {"about": "drawn by drawings.py; expected_class is the model's own output", "images": images}
    )
    (HERE / "data" / "images_28x28.json").write_text(text + "\n", encoding="utf-8")


def write_requests() -> None:
    lines = (json.dumps(request, ensure_ascii=False) + "\n" for request in requests())
    (HERE / "data" / "requests_decomposed.jsonl").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    write_sample()
    write_images()
    write_requests()
