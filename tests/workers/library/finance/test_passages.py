"""Figures read from passages after filings and reports, counted against what people read there."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from workers.library.finance.indicators import QUALITY, indicators
from workers.library.finance.passages import read_text

PASSAGES = json.loads(
    (Path(__file__).parents[3] / "data" / "finance_passages.json").read_text(encoding="utf-8")
)
KNOWN = [passage for passage in PASSAGES if not passage.get("held_out")]
HELD_OUT = [passage for passage in PASSAGES if passage.get("held_out")]


def read(passage: dict[str, Any]) -> set[tuple[str, str, Decimal]]:
    return {(item, when, figure.value) for (item, when), figure in read_text(passage["text"]).figures.items()}


def wanted(passage: dict[str, Any]) -> set[tuple[str, str, Decimal]]:
    return {
        (item, when, Decimal(value))
        for item, values in passage["figures"].items()
        for when, value in values.items()
    }


@pytest.mark.parametrize("passage", KNOWN, ids=lambda passage: passage["text"][:20])
def test_the_figures_and_the_growth_of_a_passage(passage: dict[str, Any]) -> None:
    assert read(passage) == wanted(passage)
    output, confidence = indicators(text=passage["text"])
    assert output["growth"] == passage["growth"]
    assert (output["conflicts"], confidence) == ([], None)


def test_the_card_states_what_is_measured() -> None:
    right = sum(len(read(passage) & wanted(passage)) for passage in HELD_OUT)
    precision = right / sum(len(read(passage)) for passage in HELD_OUT)
    recall = right / sum(len(wanted(passage)) for passage in HELD_OUT)
    assert f"{len(HELD_OUT)} passages" in QUALITY
    assert f"the {len(KNOWN)} they" in QUALITY
    assert f"precision {precision:.2f}, recall {recall:.2f}" in QUALITY


def test_what_cannot_be_placed_is_told_and_not_guessed() -> None:
    output, _ = indicators(text="Turnover was €612m (2023: €588m).")
    (conflict,) = output["conflicts"]
    assert conflict["kind"] == "two_values"
    assert (conflict["used"]["value"], conflict["other"]["value"]) == (612e6, 588e6)


def test_a_stated_growth_that_does_not_fit_is_told() -> None:
    text = "营业收入12.6亿元，上年同期10.5亿元，同比增长{}%。"
    assert indicators(text=text.format(20))[0]["conflicts"] == []
    output = indicators(text=text.format(25))[0]
    (conflict,) = output["conflicts"]
    assert (conflict["kind"], conflict["stated"], conflict["computed"]) == ("stated_differs", 0.25, 0.2)
    start, end = conflict["where"]["start"], conflict["where"]["end"]
    assert text.format(25)[start:end] == "25%"


def test_quarters_are_told_from_years() -> None:
    output, _ = indicators(
        text="Revenue was $12 million, compared with $10 million a year ago and"
        " $11.5 million in the prior quarter."
    )
    assert (output["growth"]["revenue"], output["growth_qoq"]["revenue"]) == (0.2, 0.043478)
    output, _ = indicators(text="营业收入同比增长18%，环比下降5%。")
    assert (output["growth"], output["growth_qoq"]) == ({"revenue": 0.18}, {"revenue": -0.05})


@pytest.mark.parametrize(
    ("text", "revenue"),
    [
        ("Acme reports revenue of 120 million USD for 2024, against 100 million USD in 2023.", 120e6),
        ("Acme's revenue was $5 million.", 5e6),
        ("A strong year with higher revenue of $7 million.", 7e6),
        ("Services revenue was $5 million.", None),
        ("iPhone revenue grew to $5 million; total revenue was $9 million.", 9e6),
        ("云业务收入8亿元。", None),
    ],
)
def test_the_revenue_is_that_of_the_whole(text: str, revenue: float | None) -> None:
    assert indicators(text=text)[0].get("revenue") == revenue


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("Revenue per employee was $300,000.", {}),
        ("Revenue growth of $5 million was seen.", {}),
        ("Revenue increased $16 billion to $143 billion.", {"revenue": 143e9}),
        ("Revenue rose by $2 million, to $12 million.", {"revenue": 12e6}),
        ("Net loss per share was $0.50.", {"eps": -0.5}),
        ("The net loss was $4 million, or $0.50 per share.", {"net_profit": -4e6, "eps": -0.5}),
        ("A dividend of $0.24 per share was declared.", {}),
        ("Revenue of $9 million is expected for 2026.", {}),
        ("营业收入增加2亿元，达到12亿元。", {"revenue": 12e8}),
        ("每股亏损0.2元。", {"eps": -0.2}),
        ("净利润目标为5亿元。", {}),
        ("Cash was $5 million and total assets $9 million.", {"assets": 9e6}),
    ],
)
def test_what_looks_like_a_figure_and_what_is_one(text: str, figures: dict[str, float]) -> None:
    found = indicators(text=text)[0]["figures"]
    assert {item: values["current"]["value"] for item, values in found.items()} == figures


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("净利润-1.2亿元，营业收入8亿元", {"net_profit": {"current": -1.2e8}, "revenue": {"current": 8e8}}),
        ("净利润－１．２亿元", {"net_profit": {"current": -1.2e8}}),
        ("净利润人民币-1.2亿元", {"net_profit": {"current": -1.2e8}}),
        ("净利润1亿元，上年同期亏损2亿元", {"net_profit": {"current": 1e8, "previous": -2e8}}),
        ("公司净亏损2.3亿元，上年同期盈利1.1亿元", {"net_profit": {"current": -2.3e8, "previous": 1.1e8}}),
        ("净利润由亏损2亿元转为盈利1亿元", {"net_profit": {"current": 1e8, "previous": -2e8}}),
        ("Net loss of $5m compared with a profit of $3m", {"net_profit": {"current": -5e6, "previous": 3e6}}),
        ("Net loss was -$5 million", {"net_profit": {"current": -5e6}}),
        ("Net loss was $(5.2) million", {"net_profit": {"current": -5.2e6}}),
        (
            "Operating income was (€3.2 million) versus €1.1 million a year earlier",
            {"operating_profit": {"current": -3.2e6, "previous": 1.1e6}},
        ),
        ("Net income ($5 million) rose", {"net_profit": {"current": 5e6}}),
        ("营业收入100亿元（约合14亿美元）", {"revenue": {"current": 1e10}}),
        ("Net income - $1 million", {"net_profit": {"current": 1e6}}),
        ("营业收入5亿元-6亿元", {"revenue": {"current": 5e8}}),
        ("Revenue of $5-6 million", {"revenue": {"current": 5e6}}),
        ("Revenue grew 12% as deposits reached $40 billion", {}),
        ("Revenue rose 5%, and capital expenditure was $3 million", {}),
        ("营业收入增长5%，存款余额3亿元", {}),
    ],
)  # fmt: skip
def test_a_figure_has_the_sign_that_the_text_gives_it(
    text: str, figures: dict[str, dict[str, float]]
) -> None:
    output, _ = indicators(text=text)
    found = {
        item: {when: row["value"] for when, row in its.items()} for item, its in output["figures"].items()
    }
    assert found == figures


@pytest.mark.parametrize(
    ("text", "margin"),
    [
        ("毛利率由30%提升至32%", 0.32),
        ("毛利率提升2个百分点至32%", 0.32),
        ("毛利率32%，上年同期为30%", 0.32),
        ("Gross margin improved from 30% to 32%", 0.32),
        ("Gross margin rose to 32%, compared to 30% a year earlier", 0.32),
        ("Gross margin rose 2%", None),
    ],
)
def test_a_ratio_that_is_stated_is_that_of_now(text: str, margin: float | None) -> None:
    output, _ = indicators(text=text)
    assert output["ratios"].get("gross_margin") == margin


def test_a_fall_by_its_sign_alone() -> None:
    assert indicators(text="营业收入10亿元，同比-5.2%")[0]["growth"] == {"revenue": -0.052}
