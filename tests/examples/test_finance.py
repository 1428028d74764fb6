import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.demo.capabilities import chart, entities, indicators, tokenize
from examples.demo.samples import requests

CHINESE, ENGLISH = (request["inputs"] for request in requests()[:2])
BOTH = pytest.mark.parametrize(("inputs", "currency"), [(CHINESE, "CNY"), (ENGLISH, "USD")])


def test_tokens_of_mixed_text():
    output, confidence = tokenize({"text": "ACME 营业收入1.5亿元, up 20%"}, {})
    assert [token["text"] for token in output["tokens"]] == [
        "ACME", "营业收入", "1.5", "亿", "元", ",", "up", "20%",
    ]  # fmt: skip
    assert output["token_count"] == 8
    assert output["kinds"] == {"latin": 2, "han": 3, "number": 2, "mark": 1}
    assert confidence is None


@given(st.text(min_size=1, max_size=300).filter(str.strip))
def test_tokens_and_entities_are_parts_of_the_text(text):
    for token in tokenize({"text": text}, {})[0]["tokens"]:
        assert text[token["start"] :].startswith(token["text"])
    end = 0
    for entity in entities({"text": text}, {})[0]["entities"]:
        assert entity["start"] >= end
        end = entity["end"]
        assert text[entity["start"] : end] == entity["text"] != ""


@BOTH
def test_entities_of_the_samples(inputs, currency):
    output, confidence = entities(inputs, {})
    money = [entity for entity in output["entities"] if entity["kind"] == "money"]
    assert [entity["value"] for entity in money] == [
        1.26e9,
        1.05e9,
        7.56e8,
        6.72e8,
        1.89e8,
        1.26e8,
        4.82e9,
        1.928e9,
    ]
    assert {entity["currency"] for entity in money} == {currency}
    assert sum(entity["kind"] == "date" for entity in output["entities"]) == 1
    assert output["companies"] in (["星河智造股份有限公司"], ["Northwind Valley Instruments Inc."])
    assert output["periods"] in (["2025年第三季度"], ["Q3 2025"])
    assert (output["revenue"], confidence) == (1.26e9, 0.6)


@BOTH
def test_indicators_of_the_samples(inputs, currency):
    output, confidence = indicators(inputs, {})
    assert output["growth"] == {"revenue": 0.2, "cost": 0.125, "net_profit": 0.5, "gross_profit": 0.3333}
    assert output["ratios"] == {
        "gross_margin": 0.4, "net_margin": 0.15, "debt_to_assets": 0.4, "asset_turnover": 0.2614,
    }  # fmt: skip
    assert output["figures"]["assets"] == {"current": 4.82e9, "previous": None, "currency": currency}
    assert output["missing"] == ["operating_profit"]
    assert (output["revenue"], confidence) == (1.26e9, 0.8)


def test_given_figures_go_before_the_text_and_take_the_unit():
    figures = {"revenue": {"current": 2, "previous": 4}, "net_profit": 1}
    output, confidence = indicators({"text": "revenue $9", "figures": figures, "unit": "亿"}, {})
    assert output["revenue"] == 2e8
    assert output["growth"] == {"revenue": -0.5}
    assert output["ratios"] == {"net_margin": 0.5}
    assert confidence == 0.95


def test_nothing_found_is_said_by_low_confidence_and_no_key():
    output, confidence = indicators({"text": "a fine year"}, {})
    assert "revenue" not in output
    assert output["missing"][0] == "revenue"
    assert confidence == 0.1
    assert entities({"text": "a fine year"}, {}) == ({"entities": [], "companies": [], "periods": []}, 0.1)


def test_no_growth_from_nothing():
    output, _ = indicators({"figures": {"revenue": {"current": 5, "previous": 0}, "assets": 0}}, {})
    assert output["growth"] == {}
    assert output["ratios"] == {}


def test_partial_outputs_share_revenue_alone():
    keys = [set(function(ENGLISH, {})[0]) for function in (tokenize, entities, indicators, chart)]
    shared = {key for k, one in enumerate(keys) for other in keys[k + 1 :] for key in one & other}
    assert shared == {"revenue"}


def test_chart_shows_every_figure():
    spec = chart(CHINESE, {})[0]["chart"]
    rows = spec["data"]["values"]
    assert spec["$schema"].endswith("vega-lite/v5.json")
    assert {"item": "revenue", "period": "previous", "value": 1.05e9, "currency": "CNY"} in rows
    assert len(rows) == 8
    assert {spec["encoding"][axis]["field"] for axis in ("x", "y", "color")} <= set(rows[0])


@pytest.mark.parametrize("function", [tokenize, entities, indicators, chart])
@pytest.mark.parametrize("inputs", [{}, {"text": ""}, {"text": 3}, {"text": "x" * 100_001}])
def test_bad_text_is_refused(function, inputs):
    with pytest.raises(ValueError, match=r"inputs\.text"):
        function(inputs, {})


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"figures": [1]}, "must be an object"),
        ({"figures": {"sales": 1}}, r"figures\.sales is not known; use revenue"),
        ({"figures": {"revenue": "1"}}, r"figures\.revenue\.current must be a number"),
        ({"figures": {"revenue": float("nan")}}, "must be a number"),
        ({"figures": {"revenue": 10**400}}, "must be a number"),
        ({"figures": {"revenue": 1}, "unit": "dozen"}, "the unit is not known"),
    ],
)
def test_bad_figures_are_refused(inputs, message):
    with pytest.raises(ValueError, match=message):
        indicators(inputs, {})


@pytest.mark.parametrize("unit", ["9", "营收1元", "A-", "revenue ", "1,111", "$1 ", "Aa "])
def test_the_longest_text_takes_no_quadratic_time(unit):
    text = (unit * 100_000)[:100_000]
    begin = time.process_time()
    entities({"text": text}, {})
    indicators({"text": text}, {})
    assert time.process_time() - begin < 5
