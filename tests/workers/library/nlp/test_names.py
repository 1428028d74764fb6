"""Where names end: rules behind the two taggers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.errors import LoadError
from workers.library.nlp import names as module
from workers.library.nlp.chinese import Piece, names_of
from workers.library.nlp.cues import english_units
from workers.library.nlp.names import Name, chinese, english, find_names


@pytest.fixture(autouse=True, scope="module")
def read() -> None:
    english()
    chinese()


def pieces(*parts: tuple[str, str]) -> tuple[list[Piece], str]:
    found, at = [], 0
    for tag, text in parts:
        found.append(Piece(tag, at, at + len(text), 0.9))
        at += len(text)
    return found, "".join(text for _, text in parts)


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        ([("PER", "哈利"), ("w", "·"), ("ORG", "华纳"), ("v", "认为")], [("person", "哈利·华纳")]),
        ([("LOC", "四川省"), ("LOC", "资阳市"), ("d", "也")], [("place", "四川省资阳市")]),
        ([("LOC", "苏门答腊岛北部")], [("place", "苏门答腊岛")]),
        ([("LOC", "北部")], [("place", "北部")]),
        ([("ORG", "中国银行。王")], [("organization", "中国银行")]),
        ([("LOC", "青海"), ("w", "、"), ("LOC", "西藏")], [("place", "青海"), ("place", "西藏")]),
        ([("n", "客户"), ("TIME", "昨天"), ("nr", "王")], []),
        ([("PER", "AVG")], []),
    ],
)
def test_chinese_names_end_where_names_end(
    parts: list[tuple[str, str]], wanted: list[tuple[str, str]]
) -> None:
    found, text = pieces(*parts)
    assert [(name.tag, text[name.start : name.end]) for name in names_of(found, text)] == wanted


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("We flew to San Francisco.", "San Francisco"),
        ("Acme Corp. fell in London.", "Acme Corp."),
        ("They met in Berlin's centre.", "Berlin"),
    ],
)
def test_english_names_end_where_names_end(text: str, name: str) -> None:
    assert text[find_names(text)[0].start : find_names(text)[0].end] == name


def test_a_genitive_stands_alone() -> None:
    assert [unit.text for unit in english_units("Berlin's AT&T's")] == ["Berlin", "'s", "AT&T", "'s"]


MIXED = st.text("王伟在北京·、。省市东部 Jane Doe's Inc. \ud800𠮷", max_size=120)


@settings(max_examples=60, deadline=None)
@given(MIXED | st.text(st.characters(codec=None), max_size=120))
def test_names_are_in_order_without_overlap_and_start_and_end_with_no_space(text: str) -> None:
    end = 0
    for name in find_names(text):
        assert isinstance(name, Name)
        assert end <= name.start < name.end <= len(text)
        assert name.kind in ("person", "organization", "place")
        assert 0 <= name.share <= 1.0001
        assert text[name.start : name.end].strip() == text[name.start : name.end]
        end = name.end


def test_a_long_sentence_is_read_in_pieces() -> None:
    text = "王伟在北京和上海之间往返" * 100
    found = find_names(text)
    assert len(found) > 250
    assert {text[name.start : name.end] for name in found} >= {"王伟", "北京", "上海"}


@pytest.mark.parametrize("reader", [english, chinese])
def test_a_model_that_is_not_there_is_told(
    reader: object, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setattr(module, "MODELS", tmp_path)
    with pytest.raises(LoadError, match="install edgeway anew"):
        reader.__wrapped__()  # type: ignore[attr-defined]
