"""Every part of a payload is examined, and what goes wrong means local."""

from __future__ import annotations

import base64
import logging
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.messages import Examination, Request
from streams.privacy.examiner import Examiner, UnknownDetector, examiner_of
from streams.privacy.masks import conceal, restore
from streams.privacy.texts import MAX_CHARS
from tests.streams.privacy.detectors_of_a_user import Broken, PngComments, png

ALL = examiner_of(Examination())
FORMATS = examiner_of(Examination(detectors=("formats", "phones")))
OWN = "tests.streams.privacy.detectors_of_a_user"
MAIL = "jane@corp.example"
PLANTED = ("jane@corp.example", "DE89370400440532013000", "+49 30 901820 55", "4111 1111 1111 1111")


def kinds(*parts: Any, by: Examiner = ALL) -> tuple[str, ...]:
    return by.examine(*parts).reasons


@pytest.mark.parametrize(
    "part",
    [
        MAIL,
        {"text": MAIL},
        {MAIL: 1},
        {"a": [{"b": {"c": ("x", [MAIL])}}]},
        {"file": f"/home/{MAIL}/cv.pdf"},
        MAIL.encode(),
        MAIL.encode("utf-16"),
        f"write to {MAIL} at once".encode("utf-16-le"),
        f"Schön: {MAIL}".encode("utf-16-be"),
        f"write to {MAIL} at once".encode("utf-32"),
        f"write to {MAIL} at once".encode("utf-32-le"),
        f"write to {MAIL} at once".encode("utf-32-be"),
        "\0".join(MAIL),
        "\x7f".join(MAIL),
        "\u2066".join(MAIL),
        "\ufe0f".join(MAIL),
        "\U000e0041".join(MAIL),
        f"Jane\x1f{MAIL}\x1fLyon",
        {"b": b"\xff\xfe\x00\x01 binary, then the mail of Jane is jane@corp.example and more\x00\x80"},
        "jane%40corp.example",
        "jane&#64;corp.example",
        "jane@corp.example",
        "ja\u200bne@corp.example",
        base64.b64encode(f"mail me: {MAIL}".encode()).decode(),
        {"image": "data:text/plain;base64," + base64.b64encode(f"mail me: {MAIL} ".encode() * 20).decode()},
        '{"to": "' + MAIL + '"}',
        {"url": f"https://shop.example/u?mail={MAIL}"},
    ],
)
def test_mail_is_found_wherever_it_lies(part: Any) -> None:
    assert "email" in kinds(part, by=FORMATS)


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ({"card": 4111111111111111}, "credit_card"),
        ([4111111111111111.0], "credit_card"),
        ({"digits": [4, 1, 1, 1] + [1] * 12}, "credit_card"),
        ({"rows": [1, 2, 3, 4, 5, 6, 7, 4111111111111111]}, "credit_card"),
        ({"phone": 2125550187}, "phone"),
        ({"ssn": 219099999}, "national_id"),
        ({"patient": {"age": 71}}, "age"),
        ({"zip": 94110}, "address"),
        ({"passport_number": "533380006"}, "passport"),
        ({"dateOfBirth": "1984-03-12"}, "birth_date"),
        ({"customer_name": "Okonkwo"}, "person"),
    ],
)
def test_numbers_and_what_their_keys_say(part: Any, kind: str) -> None:
    assert kind in kinds(part)


@pytest.mark.parametrize(
    "part",
    [
        {"temperature": 0.7, "top_k": 40, "seed": 12345},
        {"pixels": [0.5] * 784},
        {"pixels": bytes(range(256)) * 12},
        {"revenue": 12_500_000, "costs": 9_100_000.5},
        {"timestamp": 1_700_000_000_000},
        {"flags": [True, None, False]},
        {"image": base64.b64encode(png()).decode()},
        {"image": png()},
        {"image_url": "https://example.com/cat.png"},
        {},
        None,
    ],
)
def test_settings_and_tensors_are_no_findings(part: Any) -> None:
    assert ALL.examine(part).level == "normal"


def test_declared_and_named_requests() -> None:
    assert ALL(Request(privacy="high")).reasons == ("declared",)
    assert ALL(Request(query="hello", id="a-7-ff0")).level == "normal"
    assert ALL(Request(query="hello", id=MAIL)).reasons == ("email",)
    assert ALL(Request(query="hello", tenant=MAIL)).reasons == ("email",)
    assert ALL(Request(query=f"to {MAIL}")).reasons == ("email",)
    assert ALL(Request(params={"cc": [MAIL]})).reasons == ("email",)


def test_too_long_too_deep_and_strange_payloads_stay() -> None:
    deep: Any = "x"
    for _ in range(40):
        deep = [deep]
    assert kinds("x" * (MAX_CHARS + 1)) == ("too_long",)
    assert kinds({"rows": ["no one"] * MAX_CHARS}) == ("too_long",)
    assert kinds(deep) == ("too_deep",)
    assert kinds({"x": object()}) == ("unknown_type",)
    assert kinds("hello " * (MAX_CHARS // 7), by=FORMATS) == ()


def test_a_detector_that_fails_keeps_the_payload_and_its_text_out_of_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG):
        verdict = Examiner([Broken()]).examine("the secret word")
    assert (verdict.level, verdict.reasons) == ("high", ("verdict_failed",))
    assert "secret word" not in caplog.text
    assert "RuntimeError" in caplog.text


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), BaseException("a panic")])
def test_a_detector_that_wants_to_end_the_process_keeps_the_payload(error: BaseException) -> None:
    class Leaving:
        name = "leaving"

        def find(self, text: str, /) -> list[Any]:
            raise error

    assert Examiner([Leaving()]).examine("hello").reasons == ("verdict_failed",)


def test_too_slow_a_detector_keeps_the_payload(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.privacy.examiner.MAX_SECONDS", -1.0)
    assert kinds("hello") == ("too_slow",)


@pytest.mark.parametrize("gap", [" ", "_", "-", "", "\n"])
def test_words_run_together_do_not_pass_as_base64(gap: str) -> None:
    words = ["please", "tell", "Siobhan", "Breitenbach", "that", "her", "Rent", "is", "DUE"]
    assert ALL.examine({"text": gap.join(words * 10)}).level == "high"
    assert kinds("x" * (MAX_CHARS + 2)) == kinds("so it goes " * MAX_CHARS) == ("too_long",)


def test_reasons_and_findings_never_quote() -> None:
    assert MAIL not in repr(ALL.examine(MAIL))
    assert MAIL not in repr(ALL.findings(MAIL))
    assert ALL.findings(MAIL)[0].text == MAIL


def test_without_detectors_only_the_declared_level_counts() -> None:
    none = examiner_of(Examination(detectors=()))
    assert none(Request(query=MAIL)).level == "normal"
    assert none(Request(query=MAIL, privacy="high")).level == "high"


def test_ignored_kinds_count_for_nothing() -> None:
    assert examiner_of(Examination(detectors=("formats",), ignore=("email",))).examine(MAIL).level == "normal"


def test_a_users_detector() -> None:
    own = examiner_of(Examination(detectors=("formats", f"{OWN}:Projects"), mask=("project",)))
    assert own.examine("when is Bluebird due?").reasons == ("project",)
    assert own.mask("bluebird") == {"[HIDDEN_1]": "bluebird"}
    with pytest.raises(UnknownDetector, match="cannot be loaded"):
        examiner_of(Examination(detectors=(f"{OWN}:Nothing",)))


def test_text_in_images_is_read_by_a_reader() -> None:
    reading = examiner_of(Examination(detectors=("formats", f"images:{OWN}:PngComments")))
    image = png(b"by jane@corp.example")
    for part in (image, {"image": base64.b64encode(image).decode()}):
        assert kinds(part, by=reading) == ("email",)
    assert kinds({"image": png(b"by no one")}, by=reading) == ()


def test_an_image_that_nothing_reads_stays_where_the_rules_say_so() -> None:
    strict = examiner_of(
        Examination(detectors=("formats", "images", f"images:{OWN}:PngComments"), mask=("image",))
    )
    jpeg = b"\xff\xd8\xff\xe0" + bytes(40)
    verdict = strict.examine({"image": jpeg})
    assert (verdict.reasons, verdict.masked) == (("image",), False)
    assert strict.examine({"image": png()}).level == "normal"
    assert isinstance(PngComments().read(png()), str)


MASKING = examiner_of(
    Examination(detectors=("formats", "phones"), mask=("email", "phone", "credit_card", "iban"))
)


def test_masked_where_every_kind_may_be_masked() -> None:
    request = Request(
        query="write a mail", inputs={"to": MAIL, "cc": [MAIL, "bob@corp.example"], "n": 4111111111111111}
    )
    verdict = MASKING(request)
    assert (verdict.level, verdict.masked, verdict.cloud_allowed) == ("high", True, True)
    mask = MASKING.mask(request.query, request.inputs, request.params)
    hidden = conceal(request.inputs, mask)
    assert hidden == {"to": "[EMAIL_1]", "cc": ["[EMAIL_1]", "[EMAIL_2]"], "n": "[CREDIT_CARD_1#]"} or (
        set(mask.values()) == {MAIL, "bob@corp.example", "4111111111111111"}
    )
    assert MASKING.examine(hidden).level == "normal"
    assert restore(hidden, mask) == request.inputs


def test_not_masked_where_a_kind_may_not_be_or_a_text_cannot_be() -> None:
    assert not MASKING.examine(f"{MAIL} from 203.0.113.77").masked
    assert not MASKING.examine("jane%40corp.example").masked
    assert not MASKING(Request(query=MAIL, privacy="high")).masked
    assert not MASKING(Request(query=MAIL, id="bob@corp.example")).masked


def test_equal_parts_have_equal_masks() -> None:
    parts = ({"a": MAIL, "b": "bob@corp.example"}, "+49 30 901820")
    assert MASKING.mask(*parts) == MASKING.mask(*parts)
    assert examiner_of(Examination()) is ALL


LEAVES = st.none() | st.booleans() | st.integers(-999, 999) | st.text("xyz ", max_size=6)
NESTED = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


def paths(value: Any) -> list[Any]:
    """`value` with a planted text in place of every part of it, as values and as keys."""
    found: list[Any] = [lambda text: text]
    if isinstance(value, list):
        for at, item in enumerate(value):
            found += [
                lambda text, at=at, way=way: [*value[:at], way(text), *value[at + 1 :]] for way in paths(item)
            ]
    elif isinstance(value, dict):
        found.append(lambda text: {**value, text: 1})
        for key, item in value.items():
            found += [lambda text, key=key, way=way: {**value, key: way(text)} for way in paths(item)]
    return found


@given(value=NESTED, data=st.data())
def test_whatever_is_planted_anywhere_is_found_and_masked_or_kept(value: Any, data: st.DataObject) -> None:
    planted = data.draw(st.sampled_from(PLANTED))
    payload = data.draw(st.sampled_from(paths(value)))(f"so {planted} then")
    verdict = MASKING.examine(payload)
    assert verdict.level == "high"
    mask = MASKING.mask(payload)
    hidden = conceal(payload, mask)
    assert planted not in repr(hidden) or not verdict.masked
    assert restore(hidden, mask) == payload


def test_a_process_without_detectors_loads_none() -> None:
    code = (
        "import sys; from streams.privacy.examiner import examiner_of;"
        " from schemas.messages import Examination;"
        " examiner_of(Examination(detectors=())).examine('x');"
        " print(sorted({'numpy', 'phonenumbers', 'stdnum'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("write to john.smith@corp.example", True),
        ("Dr. John Smith, write to john.smith@corp.example", False),
    ],
)
def test_a_name_within_an_address_is_masked_with_it(text: str, masked: bool) -> None:
    verdict = examiner_of(Examination(mask=("email",))).examine(text)
    assert (verdict.level, verdict.masked) == ("high", masked)


@pytest.mark.parametrize(
    "text",
    [
        "revenue 12 bn",
        "sales of 5 mn, up 4 pct yoy",
        "EBITDA 4 bn USD in Q3",
        "gross profit 4 mio",
        "operating income was $1.2bn vs $1.0bn",
    ],
)
def test_the_measures_of_a_report_are_no_places(text: str) -> None:
    assert examiner_of(Examination()).findings(text) == []


def test_letters_that_are_spaced_out_are_read_together() -> None:
    examiner = examiner_of(Examination(mask=("email",)))
    verdict = examiner.examine("write to j a n e . d o e @ e x a m p l e . c o m please")
    assert (verdict.level, verdict.masked) == ("high", False)
    assert examiner.examine("is it plan a or b, or c 1 2 3").level == "normal"
