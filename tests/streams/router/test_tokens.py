from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.router.tokens import tokens_in, tokens_of


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("   ", 0),
        ("a b c", 3),
        ("abcdefgh", 2),
        ("生成财报分析", 6),
        ("生成 report 分析", 4 + 2),
        ("x" * 400, 100),
    ],
)
def test_one_text(text, tokens):
    assert tokens_in(text) == tokens


def test_texts_anywhere_count_and_numbers_do_not():
    value = {"a": ["one two", {"b": "three"}], "pixels": [0.5] * 1000, "raw": b"bytes", "n": 7}
    assert tokens_of(value, 100) == 2 + 2


def test_counting_stops_above_the_limit():
    assert 10 < tokens_of([f"w{n} x" for n in range(1000)], 10) < 20


@given(st.text(max_size=60), st.text(max_size=60))
def test_more_text_is_never_fewer_tokens(before, after):
    assert tokens_in(f"{before} {after}") >= max(tokens_in(before), tokens_in(after))
