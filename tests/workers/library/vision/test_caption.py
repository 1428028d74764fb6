"""`local/vision/caption` on real photos, and its wording."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.workers.library.vision.looking import CAT, answered, asked, photo, png, refused
from training.vision_caption import judged, told
from training.vision_photos import kept
from workers.library.vision.boxes import Found
from workers.library.vision.caption import NAMES, THRESHOLD, CaptionBackend, Captioner
from workers.library.vision.colours import is_gray, is_photo, named
from workers.library.vision.wording import KINDS, Seen, said
from workers.models.cards import read_card


@pytest.fixture(scope="module")
def backend() -> CaptionBackend:
    made = CaptionBackend(NAMES[0], Captioner())
    asyncio.run(made.load())
    return made


def test_the_count_of_right_captions_is_that_of_the_card(backend: CaptionBackend) -> None:
    from workers.library.vision.shipped import MODELS

    pairs, _ = judged(kept())
    assert told(pairs) == read_card(MODELS / "caption" / "1")["kept"]
    stated = backend.card.calibration
    assert stated is not None
    assert (stated.samples, stated.threshold) == (41, THRESHOLD)


def test_a_photo_gets_a_sentence(backend: CaptionBackend) -> None:
    answer = asked(backend, {"image": CAT})
    assert answer.output["caption"] == "a photo of a cat, mostly orange and brown, 451x300"
    assert answer.output["subjects"] == ["cat"]
    assert answer.output["unsure"] is False
    assert answer.confidence is not None
    assert answer.confidence > 0.9
    assert answered(backend, {"image": photo("coffee.jpg")})["caption"].startswith("a photo of an espresso")


def test_words_in_it_are_told(backend: CaptionBackend) -> None:
    page = answered(backend, {"image": photo("scan.png")})
    assert page["caption"].startswith('an image of text, "Region-based segmentation')
    assert page["subjects"] == ["text"]
    assert "unambiguously" in page["text"]
    assert answered(backend, {"image": photo("scan.png")}, words=False)["unsure"] is True


@pytest.mark.parametrize("image", [photo("rocket.jpg"), png(Image.new("RGB", (300, 200), "gray"))])
def test_below_the_threshold_it_is_unsure_and_says_so(backend: CaptionBackend, image: bytes) -> None:
    answer = asked(backend, {"image": image})
    assert answer.output["caption"] is None
    assert answer.output["unsure"] is True
    assert answer.output["subjects"] == []
    assert answer.confidence is not None
    assert answer.confidence < THRESHOLD
    told_anyway = answered(backend, {"image": image}, threshold=0.0)
    assert told_anyway["caption"]


def test_params_are_checked(backend: CaptionBackend) -> None:
    assert "params.threshold" in refused(backend, {"image": CAT}, threshold=2)
    assert "params.words" in refused(backend, {"image": CAT}, words="secret")


def seen(
    scores: dict[int, float], *things: Found, text: str = "", gray: bool = False, photo: bool = True
) -> Seen:
    whole = [0.0] * 1000
    for index, score in scores.items():
        whole[index] = score
    lines = text.count("\n") + 1 if text else 0
    labels = [f"class {index}" for index in range(1000)]
    return Seen(whole, labels, things, text, 0.9 if text else 0.0, lines, ["red"], gray, photo, 30, 20)


def thing(label: str, score: float = 0.9) -> Found:
    return Found(label, score, 0, 0, 1, 1)


@pytest.mark.parametrize(
    ("what", "caption"),
    [
        (seen({1: 0.9}), "a photo of a class 1, mostly red, 30x20"),
        (seen({1: 0.9}, photo=False, gray=True), "a picture of a class 1, in black and white, 30x20"),
        (seen({200: 0.9}), "a photo of a dog (class 200), mostly red, 30x20"),
        (seen({200: 0.3, 201: 0.3}), "a photo of a dog, mostly red, 30x20"),
        (seen({1: 0.1}, *[thing("bird")] * 2), "a photo of two birds, mostly red, 30x20"),
        (seen({1: 0.1}, *[thing("face")] * 3, thing("person")), "a photo of three people, mostly red, 30x20"),
        (seen({1: 0.9}, thing("sheep")), "a photo of a class 1 and a sheep, mostly red, 30x20"),
        (
            seen({1: 0.9}, text='say "hi"'),
            "a photo of a class 1, with the words \"say 'hi'\", mostly red, 30x20",
        ),
        (seen({1: 0.9}, text="a\nb\nc"), 'an image of text, "a b c", mostly red, 30x20'),
        (seen({1: 0.0}, *[thing("bus")] * 12), "a photo of 12 buses, mostly red, 30x20"),
    ],
)
def test_wording(what: Seen, caption: str) -> None:
    assert said(what).caption == caption


scores_of = st.dictionaries(st.integers(0, 999), st.floats(0, 0.2), min_size=1, max_size=5)
things_of = st.lists(
    st.builds(thing, st.sampled_from([*KINDS, "face", "person"]), st.floats(0.7, 1)), max_size=6
)


@given(scores_of, things_of)
def test_more_evidence_never_makes_it_less_sure(scores: dict[int, float], things: list[Found]) -> None:
    without, whole = said(seen(scores)), said(seen(scores, *things))
    assert 0 <= without.confidence <= whole.confidence <= 1
    assert whole.subjects
    assert whole.caption.endswith("30x20")


def test_colours_have_names() -> None:
    for colour, name in (
        *(("#f00", "red"), ("#0a0", "green"), ("#00f", "blue"), ("#ff0", "yellow"), ("#fff", "white")),
        *(("#000", "black"), ("#777", "gray"), ("#f90", "orange"), ("#630", "brown"), ("#f6c", "pink")),
    ):
        assert named(Image.new("RGB", (10, 10), colour)) == [name]
    half = Image.new("RGB", (100, 100), "#f00")
    half.paste("#00f", (0, 0, 40, 100))
    assert named(half) == ["red", "blue"]
    assert is_gray(Image.new("RGB", (10, 10), "#777"))
    assert not is_gray(half)
    assert not is_photo(half)
