"""`local/text/clean`."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.backends import Answer, Row
from workers.backends.function import backends_of
from workers.library.text import clean


def cleaned(text: str, **params: object) -> str:
    (backend,) = backends_of(clean)
    (answer,) = backend.infer([Row({"text": text}, params)])
    assert answer.error is None, answer.error
    return str(answer.output["text"])


@pytest.mark.parametrize(
    ("text", "params", "wanted"),
    [
        ("  two \t words\r\nand\u2028more  ", {}, "two words and more"),
        ("one \r\n\r\n\r\n two", {"lines": True}, "one\ntwo"),
        ("cafe\u0301", {}, "caf\u00e9"),
        ("no\u00adthing\u200b \ufeffhid\u202eden\x00\x07", {}, "nothing hidden"),
        ("👩\u200d👧 می\u200cخواهم", {}, "👩\u200d👧 می\u200cخواهم"),
        ("生成 2024 年财务报告，含图表！", {}, "生成 2024 年财务报告,含图表!"),
        ("价格:１２３元\u3000ABC ｶﾀｶﾅ", {}, "价格:123元 ABC カタカナ"),
        ("价格：１２３", {"width": False}, "价格：１２３"),
        ("① ﬁ", {}, "① ﬁ"),
        ("① ﬁ", {"form": "NFKC"}, "1 fi"),
        ("&lt;b&gt; &amp; x", {}, "&lt;b&gt; &amp; x"),
        ("&lt;b&gt; &amp; x", {"html": "entities"}, "<b> & x"),
        (
            "<p class='a'>One<br>two</p><script>steal('&lt;')</script><!-- no -->three &lt; 4",
            {"html": "strip"},
            "One two three < 4",
        ),
        ("a < b > c <3 <é", {"html": "strip"}, "a < b > c <3 <é"),
        ("<style>x{}</STYLE >y", {"html": "strip"}, "y"),
        ("<a title='x>y' href = \"a>b\">t</a>u", {"html": "strip"}, "tu"),
        ("<p class=it's>it's 5 > 3</p> \"yes\"", {"html": "strip"}, 'it\'s 5 > 3 "yes"'),
        ("<a title=\"never closed>t</a> it's", {"html": "strip"}, "t it's"),
        ("<!DOCTYPE html PUBLIC \"a\">x<img alt='>'/>y", {"html": "strip"}, "xy"),
        ("abcdef", {"max_chars": 3}, "abc"),
        ("\u200b", {}, ""),
    ],
)
def test_what_it_does(text: str, params: dict[str, object], wanted: str) -> None:
    assert cleaned(text, **params) == wanted


@given(st.text(), st.booleans())
def test_once_is_enough(text: str, lines: bool) -> None:
    once = cleaned(text, lines=lines)
    assert cleaned(once, lines=lines) == once
    assert once == once.strip()


@pytest.mark.parametrize("between", ["\u200b", "\u00ad", "\ufeff", "\x00", "\u202e"])
@pytest.mark.parametrize(
    ("split", "whole"), [("e{}\u0301", "\u00e9"), ("\u1100{}\u1161", "\uac00"), ("ｶ{}ﾞ", "ガ")]
)
def test_what_is_left_is_of_one_form(between: str, split: str, whole: str) -> None:
    assert cleaned(split.format(between)) == whole


def test_a_cut_leaves_no_space() -> None:
    assert cleaned("one two", max_chars=4) == "one"


@given(st.text(alphabet="<>/!-abpscript &;\n", max_size=200))
def test_any_markup_ends(text: str) -> None:
    assert "<script>" not in cleaned("x" + text, html="strip").partition("<script")[0]


@pytest.mark.parametrize(
    "piece", ["<", "<!--", "<a", "<script>", "</script", "&", "<p>", "<a ='", '<a ="\'">']
)
def test_its_time_grows_with_the_length_alone(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    began = time.process_time()
    cleaned(text, html="strip")
    assert time.process_time() - began < 2.0


@pytest.mark.parametrize(
    ("inputs", "params"),
    [({}, {}), ({"text": 7}, {}), ({"text": "secret"}, {"html": "secret"}), ({"text": ""}, {"max_chars": 0})],
)
def test_bad_input_is_named_and_never_quoted(inputs: dict[str, object], params: dict[str, object]) -> None:
    (backend,) = backends_of(clean)
    (answer,) = backend.infer([Row(inputs, params)])
    assert isinstance(answer, Answer)
    assert answer.error is not None
    assert answer.error.code == "bad_input"
    assert "secret" not in answer.error.message
