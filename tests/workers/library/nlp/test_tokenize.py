"""`text/tokenize`: words, numbers with units, sentences."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workers.library.nlp.asking import output, refusal
from workers.backends.function import backends_of
from workers.library.nlp.sentences import sentences_of
from workers.library.nlp.tokenize import tokenize
from workers.library.nlp.tokens import is_chinese, tokens_of

BACKENDS = {f"{b.card.side}/{b.card.capability}": b for b in backends_of(tokenize)}
TOKENIZE = BACKENDS["local/text/tokenize"]
WORDS = Path(__file__).parents[3] / "data" / "nlp" / "zh_segmented.txt"


def words(text: str) -> list[str]:
    return [token.text for token in tokens_of(text)]


def test_it_has_the_names_that_the_templates_use() -> None:
    assert set(BACKENDS) == {"local/text/tokenize", "local/finance/tokenize", "cloud/finance/tokenize"}
    assert all(b.card.cacheable and b.card.cost_per_call == 0 for b in BACKENDS.values())


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("ACME 营业收入1.5亿元, up 20%", ["ACME", "营业收入", "1.5", "亿元", ",", "up", "20%"]),
        ("don't re-use AT&T's data", ["don't", "re-use", "AT&T's", "data"]),
        ("他来到了网易杭研大厦", ["他", "来到", "了", "网易", "杭研", "大厦"]),
        ("naïve café, Größe, Москва", ["naïve", "café", ",", "Größe", ",", "Москва"]),
        ("x=1,234.5; y=12,34", ["x", "=", "1,234.5", ";", "y", "=", "12", ",", "34"]),
        ("😀ok\u200b", ["😀", "ok", "\u200b"]),
    ],
)
def test_words_of_both_languages(text: str, wanted: list[str]) -> None:
    assert words(text) == wanted


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("1,200 km/h", 1200, "km/h"),
        ("3.2亿元", 3.2, "亿元"),
        ("12.5%", 12.5, "%"),
        ("5 million people", 5, "million"),
        ("30分钟", 30, "分钟"),
        ("7 apples", 7, None),
    ],
)
def test_a_number_has_its_value_and_unit(text: str, value: float, unit: str | None) -> None:
    token = output(TOKENIZE, {"text": text})["tokens"][0]
    assert token["value"] == value
    assert token.get("unit") == unit


def test_counts_and_sentences() -> None:
    text = "Mr. Smith paid $5.20 in Jan. 2024. Was it fair? 他说：“好！”然后走了。\n\nTitle\n- one\n- two"
    said = output(TOKENIZE, {"text": text})
    parts = [text[s["start"] : s["end"]] for s in said["sentences"]]
    assert parts == [
        "Mr. Smith paid $5.20 in Jan. 2024.", "Was it fair?", "他说：“好！”", "然后走了。",
        "Title", "- one", "- two",
    ]  # fmt: skip
    assert said["sentence_count"] == 7
    assert said["character_count"] == len(text)
    assert said["token_count"] == len(said["tokens"]) == sum(said["kinds"].values())


def test_the_query_counts_where_there_is_no_text_and_long_lists_are_cut() -> None:
    said = output(TOKENIZE, {"query": "one two three"}, most_tokens=2)
    assert [token["text"] for token in said["tokens"]] == ["one", "two"]
    assert (said["token_count"], said["left_out"]) == (3, 1)


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({}, "no text"),
        ({"text": " \n"}, "no text"),
        ({"text": 3}, "Expected `str`"),
        ({"text": "x" * 100_001}, "100001 characters"),
        ({"text": "x", "most_tokens": 0}, "Expected `int` >= 1"),
    ],
)
def test_bad_input_is_told(inputs: dict[str, Any], told: str) -> None:
    assert told in refusal(TOKENIZE, inputs)


ANY = st.text(st.characters(codec=None), max_size=200) | st.text("ab1.。,$中国人\n\"' \ud800", max_size=200)


@given(ANY)
def test_tokens_are_parts_of_the_text_and_leave_only_space_out(text: str) -> None:
    end = 0
    for token in tokens_of(text):
        assert text[token.start : token.end] == token.text != ""
        assert not text[end : token.start].strip()
        end = token.end
    assert not text[end:].strip()


@given(ANY)
def test_sentences_are_parts_in_order_that_leave_only_space_out(text: str) -> None:
    end = 0
    for start, until in sentences_of(text):
        assert not text[end:start].strip()
        assert text[start:until] == text[start:until].strip() != ""
        end = until
    assert not text[end:].strip()


@given(ANY)
def test_equal_texts_have_equal_tokens(text: str) -> None:
    assert tokens_of(text) == tokens_of(text)


@pytest.mark.parametrize("part", ["a", "1", "1,", "中", ". ", "\n", "'a", "a.", "　", "1."])
def test_the_time_is_linear(part: str) -> None:
    text = part * (100_000 // len(part))
    begun = time.process_time()
    tokens_of(text)
    sentences_of(text)
    assert time.process_time() - begun < 2


def test_the_language_of_a_text() -> None:
    assert is_chinese("华为 Mate 60 发布会")
    assert not is_chinese("The word 中国 means China.")
    assert not is_chinese("")


def test_chinese_is_cut_as_the_card_says() -> None:
    """Against 40 sentences cut by hand: F1 0.88."""
    right = said = there = 0
    for line in WORDS.read_text("utf-8").splitlines():
        parts = line.split()
        ends = [sum(map(len, parts[: k + 1])) for k in range(len(parts))]
        wanted = set(zip([0, *ends], ends, strict=False))
        found = {(token.start, token.end) for token in tokens_of("".join(parts))}
        right, said, there = right + len(found & wanted), said + len(found), there + len(wanted)
    assert there == 323
    assert 2 * right / (said + there) == pytest.approx(0.88, abs=0.005)
