"""`local/vision/detect` on real photos, and the laws of its boxes."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from tests.workers.library.vision.looking import CAT, answered, asked, photo, png, refused
from training.vision_photos import counted, kept
from workers.library.vision.boxes import Found, around, overlap, pieces, suppressed
from workers.library.vision.detect import DETECTOR, KNOWN, DetectBackend


@pytest.fixture(scope="module")
def backend() -> DetectBackend:
    made = DetectBackend()
    asyncio.run(made.load())
    return made


def test_the_counts_are_those_of_the_cards(backend: DetectBackend) -> None:
    assert list(counted(DETECTOR, kept(), face=False)) == DETECTOR.things.about["kept"]
    assert list(counted(DETECTOR, kept(), face=True)) == DETECTOR.faces.about["kept"]
    assert DETECTOR.things.about["quality"] in backend.card.quality


def test_things_and_faces_have_boxes_in_pixels_and_shares(backend: DetectBackend) -> None:
    answer = asked(backend, {"image": photo("astronaut.jpg")})
    output = answer.output
    assert output["counts"] == {"person": 1, "face": 1}
    assert (output["width"], output["height"]) == (512, 512)
    for one in output["objects"]:
        assert [side * 512 for side in one["share"]] == pytest.approx(one["box"], abs=0.1)
    assert answer.confidence == pytest.approx(min(one["score"] for one in output["objects"]), abs=1e-4)
    face = next(one for one in output["objects"] if one["label"] == "face")
    person = next(one for one in output["objects"] if one["label"] == "person")
    assert person["share"][0] < face["share"][0]
    assert face["share"][2] < person["share"][2]


def test_faces_are_found_where_they_are_moved_to(backend: DetectBackend) -> None:
    import io

    face = Image.open(io.BytesIO(photo("astronaut.jpg"))).crop((130, 20, 330, 240))
    canvas = Image.new("RGB", (900, 500), (90, 110, 90))
    for left, top in ((40, 30), (620, 240)):
        canvas.paste(face, (left, top))
    objects = answered(backend, {"image": png(canvas)}, labels=["face"])["objects"]
    assert {one["label"] for one in objects} == {"face"}
    centres = sorted((one["box"][0] + one["box"][2]) / 2 for one in objects)
    assert len(centres) == 2
    assert 40 < centres[0] < 240
    assert 620 < centres[1] < 820


def test_nothing_there_is_no_error_and_has_no_confidence(backend: DetectBackend) -> None:
    answer = asked(backend, {"image": photo("rocket.jpg")})
    assert answer.output["objects"] == []
    assert answer.confidence is None


def test_params_narrow_what_is_told(backend: DetectBackend) -> None:
    image = photo("admiral.jpg")
    assert set(answered(backend, {"image": image}, labels=["person"])["counts"]) == {"person"}
    assert answered(backend, {"image": image}, labels=["cat", "dog"])["objects"] == []
    assert len(answered(backend, {"image": image}, most=1)["objects"]) == 1
    assert answered(backend, {"image": image}, min_score=1.0)["objects"] == []
    assert "potted plant" in refused(backend, {"image": CAT}, labels=["secret"])
    assert "params.most" in refused(backend, {"image": CAT}, most=0)
    assert "params.min_score" in refused(backend, {"image": CAT}, min_score=2)
    assert "params.labels" in refused(backend, {"image": CAT}, labels=3)


side = st.floats(0, 1, allow_nan=False)
founds = st.builds(
    lambda label, score, a, b, c, d: Found(label, score, min(a, b), min(c, d), max(a, b), max(c, d)),
    st.sampled_from(["cat", "dog"]),
    side,
    *[side] * 4,
)


@given(founds, founds)
def test_overlap_is_symmetric_and_a_share(one: Found, other: Found) -> None:
    assert overlap(one, other) == pytest.approx(overlap(other, one))
    assert 0 <= overlap(one, other) <= 1 + 1e-9
    if one.area > 1e-9:
        assert overlap(one, one) == pytest.approx(1)


@given(st.lists(founds, max_size=12), side)
def test_suppression_keeps_the_surest_and_is_idempotent(found: list[Found], most: float) -> None:
    left = suppressed(found, most)
    assert suppressed(left, most) == left
    assert set(left) <= set(found)
    if found:
        assert left[0].score == max(one.score for one in found)
    for one in found:
        assert one in left or any(
            other.label == one.label and other.score >= one.score and overlap(one, other) > most
            for other in left
        )


masks = st.integers(1, 9).flatmap(
    lambda wide: st.lists(st.lists(st.booleans(), min_size=wide, max_size=wide), min_size=1, max_size=9)
)


def flooded(mask: NDArray[np.bool_]) -> list[set[tuple[int, int]]]:
    """The pieces by filling from each place: slow and plain."""
    left = {(int(y), int(x)) for y, x in np.argwhere(mask)}
    found = []
    while left:
        piece, edge = set(), [left.pop()]
        while edge:
            y, x = edge.pop()
            piece.add((y, x))
            for near in ((y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)):
                if near in left:
                    left.remove(near)
                    edge.append(near)
        found.append(piece)
    return found


@given(masks)
def test_pieces_are_those_that_hang_together(rows: list[list[bool]]) -> None:
    mask = np.array(rows, np.bool_)
    found = [{(int(y), int(x)) for y, x in piece} for piece in pieces(mask)]
    assert sorted(map(sorted, found)) == sorted(map(sorted, flooded(mask)))


def test_a_piece_gets_a_box_and_its_mean_score() -> None:
    scores = np.zeros((10, 20, 3), np.float32)
    scores[:, :, 0] = 0.5
    scores[2:4, 5:10, 1] = 0.8
    scores[8, 19, 2] = 0.9
    (one,) = around(scores, ("none", "cat", "dog"), least_area=0.01, least_score=0.7)
    assert one == ("cat", pytest.approx(0.8), 0.25, 0.2, 0.5, 0.4)
    assert KNOWN > {"cat", "face"}
