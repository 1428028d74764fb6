"""Laws of masks: what is concealed comes back, whatever the value and the mask."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.privacy.masks import PLACEHOLDER, BadMask, conceal, mask_for, restore

TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        [
            "[PERSON_1]",
            "[person_1]",
            "[PERSON_1~]",
            "[PERSON_1#]",
            "[[PERSON_1]]",
            "[PERSON_1",
            "Ann",
            "Annual",
        ]
    ),
    st.lists(st.sampled_from(["Ann", " ", "[PERSON_1]", "[EMAIL_1", "]", "~", "#", "42", "中"])).map("".join),
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | TEXTS
    | st.binary(max_size=12)
    | TEXTS.map(str.encode),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
KINDS = st.sampled_from(["person", "email", "credit_card", "my own kind"])
FOUND = st.lists(st.tuples(KINDS, TEXTS | st.integers(0, 10**15).map(str)), max_size=6)


def same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)  # NaN is not equal to itself, and 1 is equal to True


@given(value=VALUES, found=FOUND)
def test_what_is_concealed_comes_back(value: Any, found: list[tuple[str, str]]) -> None:
    mask = mask_for(found)
    assert same(restore(conceal(value, mask), mask), value)


@given(texts=st.lists(TEXTS.filter(bool), min_size=1, max_size=4, unique=True))
def test_numbers_come_back_as_numbers_and_texts_as_texts(texts: list[str]) -> None:
    mask = mask_for([("phone", "4915112345678"), *(("person", text) for text in texts)])
    value = {"n": 4915112345678, "s": "4915112345678", "l": texts}
    hidden = conceal(value, mask)
    assert "4915112345678" not in repr(hidden)
    assert same(restore(hidden, mask), value)


def test_the_same_text_has_one_placeholder_in_every_part() -> None:
    mask = mask_for([("person", "Ann"), ("email", "a@b.example"), ("person", "Ann"), ("person", "Bob")])
    assert mask == {"[PERSON_1]": "Ann", "[EMAIL_1]": "a@b.example", "[PERSON_2]": "Bob"}
    parts = {"Ann": ["Bob and Ann", b"Ann <a@b.example>"]}
    assert conceal(parts, mask) == {"[PERSON_1]": ["[PERSON_2] and [PERSON_1]", b"[PERSON_1] <[EMAIL_1]>"]}


def test_a_name_inside_another_word_stays() -> None:
    mask = mask_for([("person", "Al"), ("person", "王伟")])
    assert conceal("Also Al met 小王伟的", mask) == "Also [PERSON_1] met 小[PERSON_2]的"


def test_a_model_may_change_a_placeholders_case() -> None:
    mask = mask_for([("person", "Ann")])
    assert restore("dear [person_1], dear [Person_1]", mask) == "dear Ann, dear Ann"


def test_a_placeholder_that_was_there_before_is_no_placeholder() -> None:
    mask = mask_for([("person", "Ann")])
    hidden = conceal("[PERSON_1] is not Ann", mask)
    assert hidden == "[PERSON_1~] is not [PERSON_1]"
    assert restore(hidden, mask) == "[PERSON_1] is not Ann"


def test_names_cannot_be_written_as_placeholders() -> None:
    assert PLACEHOLDER.fullmatch("[PERSON_12]")
    assert not PLACEHOLDER.fullmatch("[JOHN_SMITH_1]")
    assert mask_for([("john smith", "x")]) == {"[HIDDEN_1]": "x"}


@pytest.mark.parametrize("mask", [{"EMAIL": "x"}, {"[EMAIL_1]": ""}, {"[EMAIL_1]": "x", "[EMAIL_2]": "x"}])
def test_a_mask_that_is_none_is_refused(mask: dict[str, str]) -> None:
    with pytest.raises(BadMask):
        conceal("x", mask)
