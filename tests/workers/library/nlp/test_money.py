"""Amounts of money by grammar."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.library.nlp.money import chinese_number, find_money, unit_factor


def amounts(text: str) -> list[tuple[str, float, str]]:
    return [(text[m.start : m.end], m.value, m.currency) for m in find_money(text)]


@pytest.mark.parametrize(
    ("text", "value", "currency"),
    [
        ("$1.5bn", 1.5e9, "USD"),
        ("US$1,500 million", 1.5e9, "USD"),
        ("$ 20", 20, "USD"),
        ("-$5m", -5e6, "USD"),
        ("$-5", -5, "USD"),
        ("€20 million", 2e7, "EUR"),
        ("£3.2k", 3200, "GBP"),
        ("20 euros", 20, "EUR"),
        ("1.5 billion dollars", 1.5e9, "USD"),
        ("a 5-million-dollar", 5e6, "USD"),
        ("RMB 30 million", 3e7, "CNY"),
        ("CHF 12", 12, "CHF"),
        ("HK$20m", 2e7, "HKD"),
        ("A$30m", 3e7, "AUD"),
        ("₹500", 500, "INR"),
        ("¥1,200", 1200, "CNY"),
        ("300 yen", 300, "JPY"),
        ("3.2亿元", 3.2e8, "CNY"),
        ("1,200万元人民币", 1.2e7, "CNY"),
        ("人民币3亿元", 3e8, "CNY"),
        ("2.5万亿美元", 2.5e12, "USD"),
        ("50块钱", 50, "CNY"),
        ("港币30亿", 3e9, "HKD"),
        ("500多万元", 5e6, "CNY"),
        ("三亿五千万元", 3.5e8, "CNY"),
        ("一百二十万美元", 1.2e6, "USD"),
        ("两百欧元", 200, "EUR"),
    ],
)
def test_an_amount_has_value_and_currency(text: str, value: float, currency: str) -> None:
    for around in ("{}", "it cost {} then", "共{}。", "({})"):
        (found,) = amounts(around.format(text))
        assert found[1:] == (value, currency)
        assert found[0].strip("a ") in text


@pytest.mark.parametrize(
    "text",
    [
        "12 apples",
        "2024",
        "5 million people",
        "version 1.5",
        "三个人",
        "元旦",
        "2亿人口",
        "US 12",
        "m 5",
        "一块石头",
    ],
)
def test_a_number_without_currency_is_no_amount(text: str) -> None:
    assert amounts(text) == []


def test_a_range_is_two_amounts_and_no_debt() -> None:
    assert [text for text, *_ in amounts("$5-$10 or 10%-$3")] == ["$5", "$10", "$3"]


def test_the_scale_is_what_the_number_was_written_in() -> None:
    (money,) = find_money("净利润3.2亿元")
    assert (money.scale, money.value) == (1e8, 3.2e8)


@given(
    st.integers(0, 999_999),
    st.sampled_from(["", "万", "亿", "百万"]),
    st.sampled_from([("元", "CNY"), ("美元", "USD"), ("欧元", "EUR")]),
)
def test_what_is_written_is_read(number: int, unit: str, currency: tuple[str, str]) -> None:
    (found,) = find_money(f"共计{number}{unit}{currency[0]}，完")
    assert (found.value, found.currency) == (number * unit_factor(unit), currency[1])


def _written(number: int) -> str:
    """In Chinese, below 10^8."""
    if number >= 10_000:
        high, low = divmod(number, 10_000)
        return _written(high) + "万" + (("零" if low < 1000 else "") + _written(low) if low else "")
    shown, zero = "", False
    for power, name in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit, number = divmod(number, power)
        if digit:
            shown += ("零" if zero and shown else "") + "零一二三四五六七八九"[digit] + name
            zero = False
        else:
            zero = True
    return shown


@given(st.integers(1, 99_999_999))
def test_chinese_numbers_are_read_as_they_are_written(number: int) -> None:
    assert chinese_number(_written(number)) == number


@given(st.text(max_size=100) | st.text("0123456789.,$€元万亿 -mbk一百", max_size=100))
def test_amounts_are_parts_in_order(text: str) -> None:
    end = 0
    for money in find_money(text):
        assert end <= money.start < money.end <= len(text)
        end = money.end


@pytest.mark.parametrize("part", ["1", "$", "1,", "一", "$1", "1 ", "-", "万"])
def test_the_time_is_linear(part: str) -> None:
    begun = time.process_time()
    find_money(part * (100_000 // len(part)))
    assert time.process_time() - begun < 2


def test_an_unknown_unit_is_named() -> None:
    with pytest.raises(ValueError, match="use one of"):
        unit_factor("dozen")
