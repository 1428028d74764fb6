import json
import math
import struct
from pathlib import Path

import numpy as np
import pytest

from examples.demo import capabilities
from examples.demo.capabilities import (
    image_class,
    image_class_batch,
    intent_cloud,
    intent_local,
    intent_local_batch,
)
from examples.demo.drawings import draw

DATA = Path(capabilities.__file__).parent / "data"
IMAGES = json.loads((DATA / "images_28x28.json").read_text(encoding="utf-8"))["images"]


@pytest.mark.parametrize("intent", [intent_local, intent_cloud])
def test_intent_gives_label_alternatives_and_confidence(intent):
    output, confidence = intent({"text": "I am still waiting on my card?"}, {})
    assert output["intent"] == "card_arrival"
    shares = [confidence, *(row["probability"] for row in output["alternatives"])]
    assert len(shares) == 4
    assert shares == sorted(shares, reverse=True)
    assert 0.5 < sum(shares) <= 1 + 1e-5


def test_a_text_without_known_words_has_low_confidence():
    assert intent_local({"text": "\u2603"}, {})[1] < 0.5


def test_a_batch_answers_as_single_rows_do():
    texts = [{"text": "My card was swallowed"}, {"text": "How do I change my PIN?"}]
    for row, batched in zip(texts, intent_local_batch(texts), strict=True):
        single = intent_local(row, {})
        assert batched[0]["intent"] == single[0]["intent"]
        assert batched[1] == pytest.approx(single[1], abs=1e-5)


def test_a_bad_row_fails_alone():
    first, second, third = intent_local_batch([{"text": "my card?"}, {"text": 7}, {"text": "my PIN?"}])
    assert isinstance(second, ValueError)
    assert "got int" in str(second)
    assert isinstance(first[0]["intent"], str)
    assert isinstance(third[0]["intent"], str)
    assert isinstance(intent_local_batch([{}])[0], ValueError)
    assert intent_local_batch([]) == []


@pytest.mark.parametrize("text", [None, "", "  \n", 5, ["a"], "x" * 10_001])
def test_intent_refuses_what_is_no_question(text):
    with pytest.raises(ValueError, match=r"inputs\.text"):
        intent_local({"text": text}, {})


@pytest.mark.parametrize("image", IMAGES, ids=lambda image: image["id"])
def test_image_as_numbers_and_as_bytes_gives_the_recorded_class(image):
    packed = struct.pack("<784f", *image["pixels"])
    for pixels in (image["pixels"], packed, bytearray(packed)):
        output, confidence = image_class({"pixels": pixels}, {})
        assert output["class"] == image["expected_class"]
        assert len(output["scores"]) == 10
        assert sum(output["scores"]) == pytest.approx(1, abs=1e-4)
        assert confidence is None


def test_images_are_those_of_the_drawing_script():
    for image in IMAGES:
        shape, number = image["id"].split("-")
        np.testing.assert_allclose(image["pixels"], draw(shape, int(number)).ravel(), atol=2e-3)


@pytest.mark.parametrize(
    ("pixels", "message"),
    [
        (None, "got NoneType"),
        ("0" * 784, "got str"),
        ([0.0] * 783, "783 numbers"),
        (b"\0" * 3135, "3135 bytes"),
        ([0.0] * 783 + ["1"], r"pixels\[783\] must be a number, got str"),
        ([True] + [0.0] * 783, r"pixels\[0\] must be a number, got bool"),
        ([math.nan] + [0.0] * 783, "finite"),
        ([math.inf] + [0.0] * 783, "finite"),
        ([255.0] + [0.0] * 783, "divide grey values by 255"),
        ([10**400] + [0] * 783, "finite"),
        (struct.pack("<f", math.nan) + b"\0" * 3132, "finite"),
    ],
)
def test_image_refuses_bad_pixels_and_says_why(pixels, message):
    with pytest.raises(ValueError, match=message):
        image_class({"pixels": pixels}, {})
    good, bad = image_class_batch([{"pixels": [0.5] * 784}, {"pixels": pixels}])
    assert isinstance(bad, ValueError)
    assert 0 <= good[0]["class"] <= 9
