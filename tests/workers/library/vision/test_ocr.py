"""`local/image/ocr` on rendered and photographed text, and as the reader of privacy's examiner."""

from __future__ import annotations

import asyncio
import base64
import io
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from schemas.rules import Examination
from streams.privacy.examiner import examiner_of
from streams.privacy.finding import TextReader
from tests.workers.library.vision.looking import answered, asked, photo, png, refused
from training.vision_ocr import error_rate, kept
from workers.library.vision.ocr import QUALITY, OcrBackend, _turned, reader
from workers.library.vision.reading import Line, in_order, sureness, text_of

READER = "images:workers.library.vision.ocr:reader"


@pytest.fixture(scope="module")
def ocr() -> OcrBackend:
    backend = OcrBackend()
    asyncio.run(backend.load())
    return backend


def written(*lines: str, size: tuple[int, int] = (620, 180)) -> bytes:
    image = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(image)
    for at, line in enumerate(lines):
        draw.text((20, 20 + 50 * at), line, fill="black", font_size=30)
    return png(image)


def test_the_error_rates_are_those_of_the_card(ocr: OcrBackend) -> None:
    rates = {kind: error_rate(ocr, samples)[0] for kind, samples in kept().items()}
    rendered, scanned = (float(found) for found in re.findall(r"(\d\.\d\d)%", QUALITY)[:2])
    assert round(100 * max(rates["en"], rates["zh"]), 2) == pytest.approx(rendered, abs=0.3)
    assert round(100 * rates["scan"], 2) == pytest.approx(scanned, abs=0.6)


def test_lines_have_boxes_scores_and_an_order(ocr: OcrBackend) -> None:
    answer = asked(ocr, {"image": photo("ocr_zh_0.png")})
    output = answer.output
    lines = output["lines"]
    assert output["text"] == "\n".join(line["text"] for line in lines)
    for line, below in pairwise(lines):
        assert line["box"][1] < below["box"][1]
    for line in lines:
        left, top, right, bottom = line["share"]
        assert 0 <= left < right <= 1
        assert 0 <= top < bottom <= 1
        assert line["box"][2] == pytest.approx(right * output["width"], abs=0.2)
        assert 0.5 <= line["score"] <= 1
    assert answer.confidence is not None
    assert answer.confidence > 0.9


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_a_page_lying_on_its_side_or_upside_down_is_read(ocr: OcrBackend, turns: int) -> None:
    image = Image.open(io.BytesIO(photo("ocr_en_0.png")))
    output = answered(ocr, {"image": png(image.rotate(90 * turns, expand=True))})
    assert "Keep the container closed and away from heat" in output["text"]
    for line in output["lines"]:
        assert 0 <= line["share"][0] < line["share"][2] <= 1


def test_no_text_is_no_error_and_has_no_confidence(ocr: OcrBackend) -> None:
    answer = asked(ocr, {"image": png(Image.new("RGB", (200, 100), "white"))})
    assert answer.output == {"text": "", "lines": [], "width": 200, "height": 100}
    assert answer.confidence is None


def test_unsure_lines_are_left_out_as_asked(ocr: OcrBackend) -> None:
    image = photo("scan.png")
    whole = answered(ocr, {"image": image}, min_score=0)
    some = answered(ocr, {"image": image}, min_score=0.98)
    assert len(some["lines"]) < len(whole["lines"])
    assert all(line["score"] >= 0.98 for line in some["lines"])
    assert answered(ocr, {"image": image}, min_score=1)["lines"] == []
    assert "params.min_score" in refused(ocr, {"image": image}, min_score=1.5)
    assert "params.min_score" in refused(ocr, {"image": image}, min_score="much")


def test_personal_data_in_an_image_keeps_a_request_local() -> None:
    assert isinstance(reader, TextReader)
    reading = examiner_of(Examination(detectors=("formats", "images", READER)))
    private = written("Write to jane.doe@corp.example", "card 4111 1111 1111 1111")
    for given_as in (private, base64.b64encode(private).decode()):
        verdict = reading.examine({"image": given_as})
        assert verdict.level == "high"
        assert set(verdict.reasons) & {"email", "credit_card"}
    assert reading.examine({"image": written("Closed on public holidays")}).level == "normal"
    assert reading.examine({"image": private[:200]}).reasons == ("image",), "what cannot be read stays"


def test_the_reader_takes_whatever_it_is_given() -> None:
    assert reader.read(b"") is None
    assert reader.read(b"\x89PNG\r\n\x1a\n" + bytes(40)) is None
    assert reader.read(png(Image.new("RGB", (50, 50)))) == ""


def line(left: float, top: float, text: str = "x", wide: float = 300, high: float = 20) -> Line:
    return Line(left, top, left + wide, top + high, text, 0.9)


def test_columns_of_running_text_are_read_one_after_the_other() -> None:
    lines = [line(x, y, f"{x}/{y}") for y in (0, 30, 60) for x in (0, 400)]
    title = line(0, -50, "title", wide=150)
    assert text_of(in_order(lines)).split() == ["0/0", "0/30", "0/60", "400/0", "400/30", "400/60"]
    assert text_of(in_order([*lines, title])).split()[0] == "title"


def test_a_table_is_read_across() -> None:
    cells = [line(x, y, f"{x}/{y}", wide=60) for y in (0, 30, 60) for x in (0, 200)]
    assert text_of(in_order(cells)) == "0/0 200/0\n0/30 200/30\n0/60 200/60"


lines_of = st.lists(
    st.builds(
        line,
        st.integers(0, 900),
        st.integers(0, 900),
        st.text("ab c", max_size=6),
        st.integers(1, 400),
        st.integers(1, 60),
    ),
    max_size=30,
)


@given(lines_of)
def test_ordering_loses_no_line_and_does_not_depend_on_the_order_found(lines: list[Line]) -> None:
    told = [one for row in in_order(lines) for one in row]
    assert sorted(told) == sorted(lines)
    again = [one for row in in_order(lines[::-1]) for one in row]
    assert [one[:2] for one in again] == [one[:2] for one in told]
    assert (sureness(lines) is None) == (not any(one.text for one in lines))


@given(st.integers(1, 500), st.integers(1, 500), st.integers(0, 3), st.data())
@settings(max_examples=50)
def test_a_turned_line_lands_in_the_image(wide: int, high: int, turns: int, data: st.DataObject) -> None:
    size = (wide, high) if turns % 2 == 0 else (high, wide)
    left, right = sorted(data.draw(st.integers(0, size[0])) for _ in range(2))
    top, bottom = sorted(data.draw(st.integers(0, size[1])) for _ in range(2))
    turned = _turned(Line(left, top, right, bottom, "", 0), turns, (wide, high))
    assert 0 <= turned.left <= turned.right <= wide
    assert 0 <= turned.top <= turned.bottom <= high
    assert {turned.right - turned.left, turned.bottom - turned.top} == {right - left, bottom - top}
