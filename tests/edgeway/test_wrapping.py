"""Wrapping: no line is too wide, nothing is lost."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeway.wrapping import columns, printable, wrapped

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=200)


@settings(deadline=None)
@given(TEXT, st.integers(20, 120), st.text(" │├─", max_size=6))
def test_nothing_is_lost_and_no_line_is_too_wide(text: str, width: int, indent: str) -> None:
    lines = wrapped(text, width, indent)
    assert all(columns(line) <= width for line in lines)
    assert lines[0].startswith(indent)
    rest = " " * columns(indent)
    body = [lines[0].removeprefix(indent), *(line.removeprefix(rest) for line in lines[1:])]
    assert "".join("".join(body).split()) == "".join(text.split())


@pytest.mark.parametrize(("text", "wide"), [("abc", 3), ("生成", 4), ("e\u0301", 1), ("", 0)])
def test_columns(text: str, wide: int) -> None:
    assert columns(text) == wide


def test_lines_break_at_spaces_and_long_words_anywhere() -> None:
    assert wrapped("one two three", 8) == ["one two", "three"]
    assert wrapped("生成财报分析", 8) == ["生成财报", "分析"]
    assert wrapped("a bc", 40, "- ") == ["- a bc"]


@settings(deadline=None)
@given(st.text(max_size=50))
def test_nothing_steers_a_terminal(text: str) -> None:
    assert not [char for char in printable(text) if unicodedata.category(char) == "Cc"]


def test_control_characters_are_written_out() -> None:
    assert wrapped("a\x1b[31mb", 40) == ["a\\x1b[31mb"]
    assert printable("生成 ok") == "生成 ok"
