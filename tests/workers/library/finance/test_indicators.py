"""`finance/indicators`: tables, formulas, laws, bad input."""

from __future__ import annotations

import json
import time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.limits import MAX_RECORD_BYTES
from workers.backends import Answer, Row
from workers.backends.function import backends_of
from workers.library.finance.indicators import indicators
from workers.library.finance.items import TERMS
from workers.library.finance.periods import before, period_of

LOCAL = next(backend for backend in backends_of(indicators) if backend.card.side == "local")
APPLE = """Apple Inc., consolidated statements (in millions, except per share amounts)
,2023,2022,2021
Total net sales,"383,285","394,328","365,817"
Total cost of sales,"214,137","223,546","212,981"
Operating income,"114,301","119,437","108,949"
Net income,"96,995","99,803","94,680"
Diluted earnings per share,$6.13,$6.11,$5.61
Total current assets,"143,566","135,405",—
Total assets,"352,583","352,755",—
Total current liabilities,"145,308","153,982",—
Total liabilities,"290,437","302,083",—
Goodwill and others,1,2,3
"""
"""From the form 10-K of Apple Inc. for its year to 30 September 2023."""


def asked(inputs: dict[str, Any], **params: Any) -> Answer:
    (answer,) = LOCAL.infer([Row(inputs, params)])
    return answer


def output(inputs: dict[str, Any], **params: Any) -> Any:
    answer = asked(inputs, **params)
    assert answer.error is None, answer.error
    return answer.output


def test_a_statement_as_csv() -> None:
    found = output({"table": APPLE, "currency": "USD"})
    assert (found["period"], found["revenue"]) == ("2023", 383_285e6)
    assert found["ratios"] == {
        "gross_margin": 0.441311, "operating_margin": 0.298214, "net_margin": 0.253062,
        "debt_ratio": 0.823741, "debt_to_equity": 4.673462, "current_ratio": 0.988012,
        "asset_turnover": 1.087077, "roa": 0.275098, "roe": 1.719495,
    }  # fmt: skip
    assert found["growth"]["revenue"] == -0.028005
    assert found["growth"]["eps"] == 0.003273
    by_name = {(row["name"], row["kind"], row["period"]): row for row in found["indicators"]}
    roe = by_name["roe", "ratio", "2023"]
    assert roe["formula"] == "net_profit[2023] / mean(equity[2023], equity[2022])"
    assert roe["uses"][1]["where"]["derived"] == "assets - liabilities"
    assert by_name["revenue", "yoy", "2022"]["value"] == 0.077938
    assert by_name["eps", "amount", "2023"] | {"uses": None} == {
        "name": "eps", "kind": "amount", "period": "2023", "value": 6.13, "formula": "as stated",
        "uses": None, "currency": "USD",
    }  # fmt: skip
    assert found["figures"]["cost"]["2021"] == {
        "value": 212_981e6,
        "currency": "USD",
        "where": {"row": 2, "column": 3, "label": "Total cost of sales"},
    }
    assert found["unread"] == ["Goodwill and others"]


CHINESE = {
    "columns": ["项目（单位：万元）", "2024年第三季度", "2024年第二季度", "2023年第三季度"],
    "rows": [
        ["一、营业总收入", "12,600.50", 12000, 10500],
        ["其中：营业成本", 7560, None, 6720],
        ["净利润", "(120)", 100, -80],
        ["基本每股收益（元）", 0.12, 0.1, 0.08],
        ["毛利率", "40.5%", "", ""],
    ],
}


def test_a_chinese_table_of_quarters() -> None:
    found = output({"table": CHINESE})
    assert found["period"] == "2024Q3"
    assert found["figures"]["revenue"]["2024Q3"]["value"] == 126_005_000
    assert found["figures"]["net_profit"]["2024Q3"]["value"] == -1_200_000
    assert found["growth_qoq"]["revenue"] == 0.050042
    assert found["growth"]["net_profit"] == -0.5
    assert found["growth"]["eps"] == 0.5
    (conflict,) = found["conflicts"]
    assert (conflict["name"], conflict["stated"], conflict["computed"]) == ("gross_margin", 0.405, 0.400024)


@pytest.mark.parametrize(
    ("label", "value"),
    [
        ("四、净利润（净亏损以“-”号填列）", 120.0),
        ("Net income (loss)", 120.0),
        ("净亏损", -120.0),
        ("Net loss", -120.0),
        ("Operating loss (in millions)", None),
    ],
)
def test_losses_are_negative_whether_or_not_they_have_a_sign(label: str, value: float | None) -> None:
    figures = output({"table": [["", "2024"], [label, 120]]})["figures"]
    if value is None:
        assert figures["operating_profit"]["2024"]["value"] == -120e6
    else:
        assert figures["net_profit"]["2024"]["value"] == value


def test_figures_by_item_take_the_unit() -> None:
    figures = {"revenue": {"current": 2, "previous": 4}, "net_profit": 1, "shares": 10}
    found = output({"text": "revenue $9", "figures": figures, "unit": "亿", "currency": "CNY"})
    assert (found["revenue"], found["growth"]) == (2e8, {"revenue": -0.5})
    assert found["ratios"] == {"net_margin": 0.5}
    assert found["missing"]["current_ratio"] == ["current_assets", "current_liabilities"]
    (eps,) = [row for row in found["indicators"] if row["name"] == "eps"]
    assert (eps["value"], eps["formula"]) == (0.1, "net_profit[current] / shares[current]")


def test_nothing_is_divided_by_nothing_and_no_currencies_are_mixed() -> None:
    found = output({"figures": {"revenue": {"current": 5, "previous": 0}, "assets": 0, "equity": -3}})
    assert (found["growth"], found["ratios"]) == ({}, {})
    found = output({"text": "Revenue was $5 million. Net income was €2 million."})
    assert found["ratios"] == {}
    assert found["conflicts"][0]["kind"] == "currencies"


def test_the_largest_answers_fit_a_record() -> None:
    years = [str(year) for year in range(2001, 2025)]
    label = "营" * 55
    table = {f"{item} ({label})": {y: 1 + n + len(y) for n, y in enumerate(years)} for item in TERMS}
    found = output({"table": table})
    assert len(found["indicators"]) > 400
    text = " ".join(f"Revenue was ${n} million." for n in range(1, 3000))
    many = output({"text": text})
    assert len(many["conflicts"]) == 50
    for answer in (found, many):
        assert len(json.dumps(answer)) < MAX_RECORD_BYTES


def test_nothing_found_is_confidence_nought() -> None:
    answer = asked({"text": "a fine year"})
    assert (answer.confidence, answer.output["figures"], "revenue" in answer.output) == (0.0, {}, False)
    assert asked({"query": "营收5亿元"}).output["revenue"] == 5e8


@pytest.mark.parametrize(
    ("label", "period", "year_before", "quarter_before"),
    [
        ("FY2023", "2023", "2022", None),
        ("2025年第一季度", "2025Q1", "2024Q1", "2024Q4"),
        ("Q3 2024", "2024Q3", "2023Q3", "2024Q2"),
        ("2024年上半年", "2024H1", "2023H1", None),
        ("2023-09-30", "2023-09", "2022-09", "2023-06"),
        ("上年同期", "previous", None, None),
        ("forecast", "forecast", None, None),
    ],
)
def test_periods(label: str, period: str, year_before: str | None, quarter_before: str | None) -> None:
    assert period_of(label) == period
    assert (before(period, "yoy"), before(period, "qoq")) == (year_before, quarter_before)


Values = st.decimals(min_value=-(10**9), max_value=10**9, allow_nan=False, allow_infinity=False, places=2)
Tables = st.dictionaries(
    st.sampled_from(sorted(TERMS)),
    st.dictionaries(st.sampled_from(["2022", "2023", "2024"]), Values, min_size=1),
    min_size=1,
)


@given(Tables)
def test_every_number_is_derived_from_numbers_of_the_input(table: dict[str, dict[str, Decimal]]) -> None:
    given_in = {item: {when: str(value) for when, value in its.items()} for item, its in table.items()}
    found = output({"table": given_in})
    for item, values in found["figures"].items():
        for when, figure in values.items():
            derived = figure["where"].get("derived")
            if derived is None:
                assert figure["value"] == float(table[item][when])
            else:
                whole, part = derived.split(" - ")
                assert figure["value"] == float(table[whole][when] - table[part][when])
    for row in found["indicators"]:
        uses = [Decimal(repr(use["value"])) for use in row["uses"]]
        if row["kind"] in ("yoy", "qoq"):
            now, then = uses
            assert row["value"] == pytest.approx(float((now - then) / abs(then)), rel=1e-9, abs=1e-6)
        elif row["kind"] == "ratio":
            over, *under = uses
            assert row["value"] == pytest.approx(float(over / (sum(under) / len(under))), rel=1e-9, abs=1e-6)


@given(st.text(max_size=200))
def test_figures_of_any_text_stand_in_it(text: str) -> None:
    answer = asked({"text": text})
    if answer.error is None:
        for values in answer.output["figures"].values():
            for figure in values.values():
                where = figure["where"]
                assert "derived" in where or where["text"] == text[where["start"] : where["end"]] != ""


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({}, "give inputs.text"),
        ({"text": " "}, "give inputs.text"),
        ({"text": 3}, "Expected `str`"),
        ({"text": "x" * 100_001}, "at most 100000"),
        ({"figures": [1]}, "Expected `object"),
        ({"figures": {"secret": 1}}, "no item; use revenue"),
        ({"figures": {"revenue": float("nan")}}, "no finite number"),
        ({"figures": {"revenue": 10**400}}, "no finite number"),
        ({"figures": {"revenue": {"2023": [1]}}}, "neither a number nor a text"),
        ({"figures": {"revenue": 1}, "unit": "secret"}, "the unit is not known"),
        ({"table": 5}, "inputs.table is CSV text"),
        ({"table": "secret"}, "no header"),
        ({"table": {"columns": ["a"], "rows": [5]}}, "list of rows"),
        ({"table": [["a", "2023"], *[["revenue", 1]] * 501]}, "more than 500 rows"),
        ({"table": 'a,2023\n"' + "x" * 200_000}, "no CSV text"),
    ],
)
def test_bad_input_is_named_and_never_quoted(inputs: dict[str, Any], told: str) -> None:
    answer = asked(inputs)
    assert answer.error is not None
    assert (answer.error.code, told in answer.error.message) == ("bad_input", True), answer.error
    assert "secret" not in answer.error.message


@pytest.mark.parametrize("unit", ["9", "营收1元", "A-", "revenue ", "1,111", "$1 ", "Aa ", "净利润从1% "])
def test_the_longest_text_takes_no_quadratic_time(unit: str) -> None:
    text = (unit * 100_000)[:100_000]
    begin = time.process_time()
    asked({"text": text})
    assert time.process_time() - begin < 5


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("－5", -5.0), ("（5）", -5.0), ("$(5)", -5.0), ("($5)", -5.0), ("–5", -5.0), ("US$5", 5.0),
        ("(€5 million)", -5e6), ("٥", 5.0),
    ],
)  # fmt: skip
def test_cells_with_signs_of_several_kinds(cell: str, value: float) -> None:
    assert output({"figures": {"net_profit": cell}})["figures"]["net_profit"]["current"]["value"] == value


def test_currencies_of_cells_are_kept_and_never_mixed() -> None:
    found = output({"figures": {"revenue": {"2024": "$5", "2023": "€4"}}})
    assert found["growth"] == {}
    assert [conflict["kind"] for conflict in found["conflicts"]] == ["currencies"]
    yen = output({"figures": {"revenue": {"2024": "¥5"}}, "currency": "JPY"})["figures"]["revenue"]["2024"]
    assert yen["currency"] == "JPY", "a bare sign is of the currency that is named"


@pytest.mark.parametrize("cell", ["1.2e6", "12,34,567", "1 234 567", "5-", "12%", "1.234,5"])
def test_a_cell_that_cannot_be_read_is_told(cell: str) -> None:
    found = output({"figures": {"revenue": {"2024": cell}}})
    assert (found["figures"], found["unread"]) == ({}, ["revenue, column 1"])


def test_cells_are_parted_by_what_parts_them_in_every_line() -> None:
    tabs = "项目\t2023年\t2024年\n营业收入（万元）\t1,000\t1,200\n净利润（万元）\t1,00\t-20\n"
    assert output({"table": tabs})["growth"]["revenue"] == 0.2
    assert output({"table": "Item;2023;2024\nRevenue;1,000;1,100\nCost;1,5;3"})["growth"]["revenue"] == 0.1


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({"figures": {"revenue": 5}, "currency": "Swiss francs"}, "ISO 4217"),
        ({"figures": {"revenue": 5}, "currency": "₹"}, "ISO 4217"),
        ({"table": {"columns": "2024", "rows": [["revenue", 5]]}}, "inputs.table.columns"),
        ({"table": {"rows": [["revenue", 5]]}}, "inputs.table.columns"),
    ],
)
def test_what_would_be_guessed_is_refused(inputs: dict[str, Any], told: str) -> None:
    error = asked(inputs).error
    assert error is not None
    assert (error.code, told in error.message) == ("bad_input", True), error
