"""`local/multimodal/align`."""

from __future__ import annotations

import time
from typing import Any

import pytest

from workers.backends import Row
from workers.backends.function import backends_of
from workers.library.align import MOST_PARTS, align

CAT = {"id": "cat", "image_url": "https://example.com/cat.png", "caption": "A cat on a red sofa"}
CHART = {"id": "chart", "image": b"\x89PNG", "label": "Figure 2", "caption": "2024年营收图表"}


def aligned(*parts: dict[str, Any], **params: Any) -> Any:
    (backend,) = backends_of(align)
    (answer,) = backend.infer([Row({"parts": list(parts)}, params)])
    assert answer.error is None, answer.error
    return answer.output


def pairs(output: Any) -> list[tuple[str, str, str]]:
    return [(text["id"], group["id"], text["by"]) for group in output["groups"] for text in group["texts"]]


def test_a_reference_pairs_with_each_image_it_names() -> None:
    text = {"id": "both", "text": "compare them", "refers_to": ["chart", "cat"], "region": [0, 0, 0.5, 1]}
    output = aligned(CAT, text, CHART)
    assert pairs(output) == [("both", "cat", "reference"), ("both", "chart", "reference")]
    assert output["groups"][0] == {
        **CAT,
        "texts": [
            {
                "id": "both",
                "text": "compare them",
                "by": "reference",
                "score": 1.0,
                "region": [0.0, 0.0, 0.5, 1.0],
            }
        ],
    }
    assert output["groups"][1]["image"] == b"\x89PNG"
    assert output["unmatched"] == {"texts": [], "images": []}


@pytest.mark.parametrize(
    ("text", "by"),
    [
        ("as FIGURE\u30002 shows", "label"),
        ("图figure 2说明", "label"),
        ("Figure 25 is another", None),
        ("2024 年营收图表", "caption"),
        ("nothing alike", None),
    ],
)
def test_labels_and_captions_in_any_writing(text: str, by: str | None) -> None:
    far = {"id": "t", "text": text, "at": 100.0}
    found = pairs(aligned(CAT, CHART, far))
    assert found == ([] if by is None else [("t", "chart", by)])


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("a" * 7000, "a" * 50),
        ("aa " * 2300, "a aa aa a"),
        ("图" * 7000, "图" * 49 + "表"),
        ("1" * 7000, "11"),
    ],
)
def test_its_time_grows_with_the_length_alone(text: str, label: str) -> None:
    half = MOST_PARTS // 2
    parts = [{"text": text}] * half + [{"image_url": "https://example.com/a.png", "label": label}] * half
    began = time.process_time()
    output = aligned(*parts)
    assert time.process_time() - began < 10, "it was a minute and more for as much as a record holds"
    assert {by for _, _, by in pairs(output)} <= {"position"}


def test_the_nearest_image_within_reach_and_the_earlier_of_two() -> None:
    left = {"id": "left", "image": "aGk="}
    right = {"id": "right", "image": "aGk="}
    output = aligned(left, {"text": "between"}, right, {"text": "after"}, {"text": "too far"})
    assert pairs(output) == [("p1", "left", "position"), ("p3", "right", "position")]
    assert output["unmatched"] == {"texts": ["p4"], "images": []}
    output = aligned(left, {"text": "between"}, right, {"text": "after"}, {"text": "too far"}, reach=2)
    assert output["unmatched"]["texts"] == []
    spoken = {"id": "said", "text": "now", "at": 12.5}
    film = [{"id": f"frame{n}", "image": "aGk=", "at": float(n)} for n in range(20)]
    output = aligned(*film, spoken, reach=0.6)
    assert pairs(output) == [("said", "frame12", "position")]
    assert len(output["unmatched"]["images"]) == 19


def test_texts_alone_and_images_alone() -> None:
    assert aligned({"text": "hello"})["unmatched"] == {"texts": ["p0"], "images": []}
    assert aligned(CAT)["unmatched"] == {"texts": [], "images": ["cat"]}


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [{"id": "secret"}],
        [{"text": "secret", "image": "secret"}],
        [{"text": "a", "id": "secret"}, {"text": "b", "id": "secret"}],
        [{"text": "a", "refers_to": "secret"}],
        [{"text": "a", "region": [0, 0, 2, 1]}],
        [{"text": 7}],
        [{"text": "a"}] * (MOST_PARTS + 1),
        "secret",
    ],
)
def test_bad_input_is_named_and_never_quoted(parts: Any) -> None:
    (backend,) = backends_of(align)
    (answer,) = backend.infer([Row({"parts": parts}, {})])
    assert answer.error is not None
    assert answer.error.code == "bad_input"
    assert "secret" not in answer.error.message
