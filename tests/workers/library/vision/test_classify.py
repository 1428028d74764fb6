"""`local/vision/classify` on real photos."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from PIL import Image

from tests.workers.library.vision.looking import CAT, answered, asked, photo, refused, told
from training.vision_photos import kept_right
from workers.backends import Row
from workers.library.vision.classify import MODEL, SIDE, ClassifyBackend, labels_of, pixels_of


@pytest.fixture(scope="module")
def backend() -> ClassifyBackend:
    made = ClassifyBackend()
    asyncio.run(made.load())
    return made


def test_the_count_of_right_labels_is_that_of_the_card(backend: ClassifyBackend) -> None:
    kept = kept_right((MODEL.folder / "model.onnx").read_bytes(), list(labels_of()))
    assert kept == MODEL.about["kept"]
    assert f"right at once on {kept[0]} of {kept[2]}" in backend.card.quality


def test_the_likeliest_classes_come_first(backend: ClassifyBackend) -> None:
    answer = asked(backend, {"image": photo("coffee.jpg")})
    classes = answer.output["classes"]
    assert answer.output["label"] == classes[0]["label"] == "espresso"
    assert answer.confidence == pytest.approx(classes[0]["score"], abs=1e-6)
    assert len(classes) == 5
    scores = [one["score"] for one in classes]
    assert scores == sorted(scores, reverse=True)


def test_all_classes_together_are_certain_and_have_names_of_their_own(backend: ClassifyBackend) -> None:
    classes = answered(backend, {"image": CAT}, top=1000)["classes"]
    assert sum(one["score"] for one in classes) == pytest.approx(1.0, abs=0.01)
    assert len({one["label"] for one in classes}) == 1000
    assert all(labels_of()[one["index"]] == one["label"] for one in classes)


def test_a_batch_gives_what_each_alone_gives(backend: ClassifyBackend) -> None:
    names = [name for name in told("photos.json") if name.endswith(".jpg")]
    rows = [Row({"image": photo(name)}, {"top": 3}) for name in names]
    together = backend.infer(rows)
    for row, answer in zip(rows, together, strict=True):
        (alone,) = backend.infer([row])
        assert alone.output["label"] == answer.output["label"]
        assert alone.confidence == pytest.approx(answer.confidence, abs=1e-4)


@pytest.mark.parametrize("top", [0, 1001, "five", 2.5])
def test_params_out_of_bounds_are_refused(backend: ClassifyBackend, top: object) -> None:
    assert "params.top" in refused(backend, {"image": CAT}, top=top)


def test_params_of_other_steps_are_left_alone(backend: ClassifyBackend) -> None:
    assert answered(backend, {"image": CAT}, width=28)["label"] == "Egyptian cat"


def test_the_middle_square_is_looked_at() -> None:
    image = Image.new("RGB", (600, 200), "red")
    image.paste("blue", (200, 0, 400, 200))
    values = pixels_of(image)
    assert values.shape == (SIDE, SIDE, 3)
    assert values[SIDE // 2, SIDE // 2].tolist() == pytest.approx([-127 / 128, -127 / 128, 1.0])
    assert np.abs(values).max() <= 1.0
