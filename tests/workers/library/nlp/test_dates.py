"""Dates and periods by grammar."""

from __future__ import annotations

import time
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.library.nlp.dates import find_dates

TODAY = date(2024, 5, 1)


def dates(text: str, today: date | None = None) -> list[tuple[str, str, str | None]]:
    return [(d.kind, text[d.start : d.end].strip(), d.value) for d in find_dates(text, today)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2024-03-12", "2024-03-12"),
        ("2024/3/2", "2024-03-02"),
        ("12 March 2024", "2024-03-12"),
        ("March 12th, 2024", "2024-03-12"),
        ("12th of March, 2024", "2024-03-12"),
        ("Sept. 3, 2021", "2021-09-03"),
        ("May 2024", "2024-05"),
        ("13/04/2024", "2024-04-13"),
        ("04/13/2024", "2024-04-13"),
        ("03/04/2024", None),
        ("12 March", None),
        ("2024年3月12日", "2024-03-12"),
        ("2024 年 3 月 12 日", "2024-03-12"),
        ("二〇二四年十二月三十一日", "2024-12-31"),
        ("2023年5月", "2023-05"),
        ("3月12日", None),
        ("yesterday", None),
        ("昨天", None),
    ],
)
def test_a_day(text: str, value: str | None) -> None:
    for around in ("{}", "on {}, then", "于{}发布"):
        if around.isascii() or not text.isascii():
            assert dates(around.format(text)) == [("date", text, value)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Q3 2025", "2025-07-01/2025-09-30"),
        ("2024 Q1", "2024-01-01/2024-03-31"),
        ("first quarter of 2024", "2024-01-01/2024-03-31"),
        ("third-quarter", None),
        ("H1 2024", "2024-01-01/2024-06-30"),
        ("second half of 2023", "2023-07-01/2023-12-31"),
        ("FY2024", "2024"),
        ("2024年第一季度", "2024-01-01/2024-03-31"),
        ("2025年前三季度", "2025-01-01/2025-09-30"),
        ("2024年上半年", "2024-01-01/2024-06-30"),
        ("2024年度", "2024"),
        ("2024年", "2024"),
        ("上半年", None),
        ("去年", None),
        ("last year", None),
    ],
)
def test_a_period(text: str, value: str | None) -> None:
    assert dates(text) == [("period", text, value)]


def test_today_gives_a_day_to_what_has_none() -> None:
    text = "yesterday, 昨天, 3月12日, 12 March, last year, 上半年, Q3"
    assert [value for _, _, value in dates(text, TODAY)] == [
        "2024-04-30", "2024-04-30", "2024-03-12", "2024-03-12", "2023", "2024-01-01/2024-06-30",
        "2024-07-01/2024-09-30",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "2024-02-30",
        "2024-13-01",
        "32/01/2024",
        "May I",
        "3.2亿元",
        "1.2.3",
        "12月",
        "version 2024.1",
        "第五",
        "0/0/2024",
    ],
)
def test_what_is_no_day_is_left(text: str) -> None:
    assert dates(text) == []


@given(st.dates(date(1700, 1, 1), date(2199, 12, 31)))
def test_every_day_is_read_in_every_form(day: date) -> None:
    month = day.strftime("%B")
    forms = [
        day.isoformat(), f"{day.day} {month} {day.year}", f"{month} {day.day}, {day.year}",
        f"{day.year}年{day.month}月{day.day}日",
    ]  # fmt: skip
    for form in forms:
        assert dates(f"({form})") == [("date", form, day.isoformat())]


@given(st.text(max_size=120) | st.text("0123456789-/年月日一二十 .QHMay第季度上半", max_size=120))
def test_dates_are_parts_in_order(text: str) -> None:
    end = 0
    for dated in find_dates(text, TODAY):
        assert end <= dated.start < dated.end <= len(text)
        end = dated.end


@pytest.mark.parametrize("part", ["1", "2024", "1/", "年", "一", "第", " ", "2024年", "May ", "二〇二四"])
def test_the_time_is_linear(part: str) -> None:
    begun = time.process_time()
    find_dates(part * (50_000 // len(part)))
    assert time.process_time() - begun < 3
