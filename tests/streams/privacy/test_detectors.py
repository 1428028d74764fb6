"""What the built-in detectors find, on texts that nothing was trained on."""

from __future__ import annotations

import time

import pytest

from schemas.messages import Examination
from streams.privacy.detectors import BUILT_IN, UnknownDetector, load
from streams.privacy.examiner import examiner_of
from streams.privacy.finding import KINDS, Detector
from tests.streams.privacy.samples import CLEAN, SENSITIVE

ALL = examiner_of(Examination())
CASES = [(kind, text) for kind, texts in SENSITIVE.items() for text in texts]


@pytest.mark.parametrize(("kind", "text"), CASES, ids=[f"{kind}-{n}" for n, (kind, _) in enumerate(CASES)])
def test_personal_data_is_found(kind: str, text: str) -> None:
    assert ALL.examine(text).level == "high"


def test_most_is_found_as_what_it_is() -> None:
    told = [kind in {found.kind for found in ALL.findings(text)} for kind, text in CASES]
    assert sum(told) >= 0.95 * len(told), [case for case, right in zip(CASES, told, strict=True) if not right]


def test_kinds_are_the_documented_ones() -> None:
    assert {found.kind for _, text in CASES for found in ALL.findings(text)} <= KINDS


def test_texts_of_no_one_are_left_alone() -> None:
    wrong = [text for text in CLEAN if ALL.examine(text).level == "high"]
    assert len(wrong) <= 0.15 * len(CLEAN), wrong


@pytest.mark.parametrize("name", BUILT_IN)
def test_time_grows_with_length_alone(name: str) -> None:
    """A pattern that goes back over what it has read takes minutes for some texts of this length."""
    detector = load(name)
    assert isinstance(detector, Detector)
    pieces = (
        "a ",
        "1 ",
        "1-",
        "a@",
        "中",
        "Aa1",
        "rue ",
        "www.",
        "a-",
        "::",
        "mr ",
        "password is ",
        "+1 ",
        "a.",
    )
    for piece in pieces:
        text = (piece * 20_000)[:20_000]
        started = time.thread_time()
        sum(1 for _ in detector.find(text))
        assert time.thread_time() - started < 1.5, (name, piece)


@pytest.mark.parametrize(
    "name", ["nothing", "no.module:x", "json:nothing", "json:dumps", "images:json:dumps", ":"]
)
def test_a_detector_that_is_not_there_is_refused(name: str) -> None:
    with pytest.raises(UnknownDetector, match=r"detector"):
        load(name)
