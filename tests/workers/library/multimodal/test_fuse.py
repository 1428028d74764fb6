"""`local/multimodal/fuse`: one record an image, of texts, words in it, captions, classes and objects."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.backends import Answer, Row
from workers.backends.function import backends_of
from workers.library.align import align
from workers.library.multimodal.fuse import MOST_ITEMS, fuse

CHART = {
    "id": "chart",
    "image_url": "https://example.com/chart.png",
    "label": "Figure 2",
    "caption": "Revenue by quarter",
}
TEXT = {"id": "t", "text": "Figure 2: Total revenue 31.2 million. Margin 12%."}
OTHER = {"id": "far", "text": "Unrelated words", "at": 99}


def line(text: str, at: int = 0, score: float = 0.9) -> dict[str, Any]:
    return {"text": text, "share": [0.1, 0.1 * at, 0.5, 0.1 * at + 0.05], "box": [], "score": score}


def asked(inputs: dict[str, Any], **params: Any) -> Answer:
    (backend,) = backends_of(fuse)
    (answer,) = backend.infer([Row(inputs, params)])
    return answer


def fused(inputs: dict[str, Any]) -> Any:
    answer = asked(inputs)
    assert answer.error is None, answer.error
    return answer.output


def refused(inputs: dict[str, Any]) -> str:
    answer = asked(inputs)
    assert answer.error is not None
    assert answer.error.code == "bad_input"
    assert "secret" not in answer.error.message
    return answer.error.message


def kinds(record: Any) -> list[str]:
    return [item["id"] for item in record["items"]]


def test_texts_go_to_their_image_and_the_others_stay_loose() -> None:
    output = fused({"parts": [CHART, TEXT, OTHER]})
    (record,) = output["images"]
    assert kinds(record) == ["text:t", "caption:given"]
    assert record["items"][0]["sources"][0]["by"] == "label"
    assert (record["label"], record["image_url"]) == ("Figure 2", CHART["image_url"])
    assert [item["text"] for item in output["loose"]] == ["Unrelated words"]
    assert output["text"].endswith("\n\ntext: Unrelated words")


def test_what_is_written_in_the_image_and_given_too_is_one_item_with_both_sources() -> None:
    lines = [line("TOTAL REVENUE 31.2 MILLION", 1), line("Source: survey", 2)]
    output = fused({"parts": [CHART, TEXT], "found": {"chart": {"ocr": {"lines": lines}}}})
    (record,) = output["images"]
    assert kinds(record) == ["text:t", "caption:given", "written:1"]
    first = record["items"][0]
    assert [source["kind"] for source in first["sources"]] == ["text", "written"]
    assert first["region"] == lines[0]["share"], "the text is where the words are"
    assert output["conflicts"] == 0


@pytest.mark.parametrize(
    "written", ["Total revenue 37.2 million", "Total revenue 31,2 milliom", "Margin 13%", "Margin 2%"]
)
def test_what_contradicts_is_kept_and_marked(written: str) -> None:
    output = fused({"parts": [CHART, TEXT], "found": {"chart": {"ocr": {"lines": [line(written)]}}}})
    items = {item["id"]: item for item in output["images"][0]["items"]}
    assert items["written:0"]["conflicts"] == ["text:t"]
    assert items["text:t"]["conflicts"] == ["written:0"]
    assert output["conflicts"] == 1
    assert "(conflicts with text:t)" in output["text"]


def test_one_image_without_parts() -> None:
    output = fused(
        {
            "text": "What does it cost?",
            "ocr": {"lines": [line("Espresso 2,50")], "text": "Espresso 2,50"},
            "caption": {"caption": "a photo of a cup", "unsure": False},
            "classify": {"classes": [{"label": "cup", "index": 968, "score": 0.9}]},
            "detect": {"objects": [{"label": "bottle", "share": [0, 0, 0.5, 1], "score": 0.8}]},
        }
    )
    assert kinds(output["images"][0]) == ["text:text", "caption:seen", "written:0", "class:0", "object:0"]
    assert output["text"].splitlines() == [
        "[image image]",
        "text: What does it cost?",
        "caption: a photo of a cup",
        "written: Espresso 2,50",
        "classes: cup 0.90",
        "objects: bottle 0.80",
    ]


def test_an_unsure_caption_says_nothing() -> None:
    output = fused({"text": "hi", "caption": {"caption": None, "unsure": True}})
    assert kinds(output["images"][0]) == ["text:text"]


def test_chinese_in_any_width() -> None:
    output = fused(
        {"text": "合计金额：1284.50元，请付款", "ocr": {"lines": [line("合计金额:１２８４．５０元")]}}
    )
    assert kinds(output["images"][0]) == ["text:text"]


def test_a_number_within_another_is_not_the_same() -> None:
    output = fused({"text": "order 123456789012", "ocr": {"lines": [line("34567890")]}})
    assert kinds(output["images"][0]) == ["text:text", "written:0"]


def test_groups_of_an_earlier_step_are_taken_as_they_are() -> None:
    parts = [CHART, TEXT, OTHER]
    (aligner,) = backends_of(align)
    (aligned,) = aligner.infer([Row({"parts": parts}, {})])
    assert fused({"parts": parts, "groups": aligned.output["groups"]}) == fused({"parts": parts})


@pytest.mark.parametrize(
    ("inputs", "word"),
    [
        ({}, "nothing to fuse"),
        ({"parts": []}, "nothing to fuse"),
        ({"parts": "secret"}, "array"),
        ({"parts": [CHART], "found": {"secret": {}}}, "1 images"),
        ({"parts": [CHART], "text": "secret"}, "one image alone"),
        ({"text": "a", "ocr": {"lines": [{"secret": 1}]}}, "vision capabilities"),
        ({"text": "a", "ocr": {"lines": 7}}, "vision capabilities"),
        ({"text": "a", "detect": {"objects": [{"label": "cat", "share": [0, 1]}]}}, "shares"),
        ({"parts": [CHART], "groups": [{"id": "secret", "texts": []}]}, "not in inputs.parts"),
        ({"parts": [CHART], "groups": [{"id": "chart", "texts": [{"id": "secret"}]}]}, "field `text`"),
        ({"ocr": {"lines": [{"text": 5}]}}, "`str`, got `int`"),
        ({"ocr": {"lines": [{"text": "a", "score": "secret"}]}}, "`float | null`, got `str`"),
        ({"classify": {"classes": [{"label": "a", "score": float("nan")}]}}, "`float` >= "),
        ({"detect": {"objects": [{"label": "a", "share": [0, 0, 1, float("inf")]}]}}, "`float` <= "),
        ({"parts": [CHART], "groups": [{"id": "chart", "texts": [{"id": "a", "text": 5}]}]}, "`str`, got"),
        ({"images": [{"id": "a"}, {"id": "a"}]}, "one id"),
        ({"text": "a", "ocr": {"lines": [line(str(at)) for at in range(MOST_ITEMS + 1)]}}, "more than"),
    ],
)
def test_what_makes_no_sense_is_refused_clearly(inputs: dict[str, Any], word: str) -> None:
    assert word in refused(inputs)


words = st.text("ab1 .：", max_size=14)
lines = st.builds(line, words, st.integers(0, 8), st.floats(0, 1))
found = st.fixed_dictionaries(
    {},
    optional={
        "ocr": st.fixed_dictionaries({"lines": st.lists(lines, max_size=6)}),
        "caption": st.fixed_dictionaries({"caption": st.none() | words}),
        "classify": st.fixed_dictionaries({"classes": st.lists(st.builds(line, words), max_size=3)}),
    },
)


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """Parts with unique ids, and what was found in some of their images."""
    parts: list[dict[str, Any]] = []
    for at in range(draw(st.integers(1, 6))):
        if draw(st.booleans()):
            about = {"image_url": f"https://example.com/{at}.png"}
            parts.append({"id": f"i{at}", **about, **draw(st.sampled_from([{}, {"caption": "ab 1 a"}]))})
        else:
            parts.append({"id": f"t{at}", "text": draw(words)})
    images = [part["id"] for part in parts if "image_url" in part]
    told = draw(st.dictionaries(st.sampled_from(images), found, max_size=3)) if images else {}
    return {
        "parts": parts,
        "found": {
            name: {
                key: {"classes": [{"label": one["text"]} for one in value["classes"]]}
                if key == "classify"
                else value
                for key, value in one.items()
            }
            for name, one in told.items()
        },
    }


def sayings(inputs: dict[str, Any]) -> list[str]:
    texts = [part["text"] for part in inputs["parts"] if "text" in part]
    texts += [part["caption"] for part in inputs["parts"] if "caption" in part]
    for one in inputs["found"].values():
        texts += [each["text"] for each in one.get("ocr", {}).get("lines", [])]
        texts += [each["label"] for each in one.get("classify", {}).get("classes", [])]
        texts += [said] if (said := one.get("caption", {}).get("caption")) else []
    return texts


@given(requests())
@settings(max_examples=80, deadline=None)
def test_nothing_is_lost_the_order_is_stable_and_twice_is_once(inputs: dict[str, Any]) -> None:
    output = fused(inputs)
    items = [item for record in output["images"] for item in record["items"]] + output["loose"]
    told = [source["text"] for item in items for source in item["sources"]]
    assert set(told) == set(sayings(inputs))
    assert len(told) >= len(sayings(inputs))
    images = [part["id"] for part in inputs["parts"] if "image_url" in part]
    assert [record["id"] for record in output["images"]] == images
    for record in output["images"]:
        names = kinds(record)
        assert len(set(names)) == len(names)
        ranks = [
            ("text", "caption", "written", "class", "object").index(item["kind"]) for item in record["items"]
        ]
        assert ranks == sorted(ranks)
        for item in record["items"]:
            against = [other for other in record["items"] if item["id"] in other.get("conflicts", [])]
            assert [other["id"] for other in against] == sorted(item.get("conflicts", []), key=names.index), (
                "a conflict has two sides"
            )
    assert fused({"images": output["images"], "loose": output["loose"]}) == output
    assert fused({**inputs, "images": output["images"], "loose": output["loose"]}) == output
    assert fused(inputs) == output
