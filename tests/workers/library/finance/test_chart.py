"""`finance/chart`: valid specifications, pictures that show something, bounds."""

from __future__ import annotations

import base64
import io
import json
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from schemas.limits import MAX_RECORD_BYTES
from workers.backends import Answer, Row
from workers.backends.function import backends_of
from workers.library.finance import chart_render
from workers.library.finance.chart import chart
from workers.library.finance.indicators import indicators

LOCAL = next(backend for backend in backends_of(chart) if backend.card.side == "local")
ROOT = Path(__file__).parents[4]
CHINESE = "营业收入12.6亿元，上年同期10.5亿元；净利润1.89亿元，上年同期1.26亿元，每股收益0.4元。"
ENGLISH = (
    "Revenue was $1.26 billion, compared with $1.05 billion a year earlier. Net income was $189 million."
)
SERIES = {"North": {"Q1": 5.0, "Q2": 7, "Q3": -2}, "South": {"Q1": 1, "Q2": None, "Q3": 4}}
PARTS = {"sales": {"online": 60, "shops": 30, "others": 10}}
SCHEMA = jsonschema.Draft7Validator(
    json.loads(
        files("altair.vegalite.v5.schema").joinpath("vega-lite-schema.json").read_text(encoding="utf-8")
    )
)


def asked(inputs: dict[str, Any], **params: Any) -> Answer:
    (answer,) = LOCAL.infer([Row(inputs, params)])
    return answer


def output(inputs: dict[str, Any], **params: Any) -> Any:
    answer = asked(inputs, **params)
    assert answer.error is None, answer.error
    return answer.output


def values(found: Any) -> list[tuple[str, str, float]]:
    return [(row["category"], row["series"], row["value"]) for row in found["chart"]["data"]["values"]]


@pytest.mark.parametrize(
    ("inputs", "kind"),
    [
        ({"series": PARTS}, "bar"),
        ({"series": SERIES}, "line"),
        ({"series": SERIES}, "grouped"),
        ({"series": SERIES}, "stacked"),
        ({"series": PARTS}, "pie"),
        ({"text": CHINESE}, None),
        ({"text": ENGLISH}, None),
        ({"indicators": indicators(text=CHINESE)[0]}, None),
        ({"indicators": indicators(text=CHINESE)[0], "what": "growth"}, None),
        ({"indicators": indicators(text=CHINESE)[0], "what": "ratios"}, None),
    ],
)
def test_a_chart_is_valid_and_drawn(inputs: dict[str, Any], kind: str | None) -> None:
    more = {} if kind is None else {"kind": kind}
    found = output(inputs, **more, format="png", width=300, height=200)
    assert not list(SCHEMA.iter_errors(found["chart"]))
    with Image.open(io.BytesIO(found["png"])) as picture:
        shades = np.asarray(picture.convert("L"))
    assert shades.shape[1] > 300
    assert (shades < 200).mean() > 0.01, "an empty picture"
    svg = output(inputs, **more, format="svg", width=300, height=200)["svg"]
    assert ElementTree.fromstring(svg).tag.endswith("svg")


def test_a_report_in_chinese_has_its_labels_and_units() -> None:
    found = output({"text": CHINESE})
    assert values(found) == [
        ("营业收入", "上年同期", 1.05e9), ("营业收入", "本期", 1.26e9),
        ("净利润", "上年同期", 1.26e8), ("净利润", "本期", 1.89e8),
    ]  # fmt: skip
    assert found["left_out"] == ["eps"]
    spec = found["chart"]
    assert (spec["title"], spec["encoding"]["y"]["title"]) == ("财报数据", "亿元")
    assert spec["encoding"]["y"]["axis"]["labelExpr"] == "format(datum.value / 100000000, ',~r')"
    assert {row["currency"] for row in spec["data"]["values"]} == {"CNY"}


def test_a_report_in_english_and_its_growth() -> None:
    found = output({"text": ENGLISH})
    assert values(found)[:2] == [("Revenue", "A year before", 1.05e9), ("Revenue", "This period", 1.26e9)]
    assert found["chart"]["encoding"]["y"]["title"] == "USD bn"
    grown = output({"indicators": indicators(text=ENGLISH)[0], "what": "growth"}, title="Growth")
    assert values(grown) == [("Revenue", "Growth on the year before", 0.2)]
    assert grown["chart"]["encoding"]["y"]["axis"]["labelExpr"] == "format(datum.value, '.0%')"
    assert grown["chart"]["title"] == "Growth"


def test_without_chinese_letters_our_labels_are_english_and_it_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chart_render, "has_chinese_font", lambda: False)
    found = output({"text": CHINESE}, format="png")
    assert "no font" in found["warnings"][0]
    assert values(found)[0][:2] == ("Revenue", "A year before")
    assert output({"text": CHINESE}, format="svg")["warnings"] == [], "an SVG is drawn where it is seen"
    monkeypatch.setattr(chart_render, "has_chinese_font", lambda: True)
    assert output({"text": CHINESE}, format="png")["warnings"] == []


def test_without_vl_convert_there_are_specifications_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chart_render, "can_render", lambda: False)
    assert output({"series": PARTS})["chart"]
    error = asked({"series": PARTS}, format="svg").error
    assert error is not None
    assert (error.code, "edgeway[charts]" in error.message) == ("bad_input", True)
    chart_render.warm_up()


def test_nothing_is_fetched_and_no_expression_is_run() -> None:
    odd = {"datum.x' + 1": {"</text><script>": 1.0, "https://example.com/a.csv": 2.0}}
    svg = output({"series": odd}, title="{{7*7}}", format="svg")["svg"]
    assert "<script>" not in svg
    assert "{{7*7}}" in svg


ODD_LABELS = """
import json
from tests.workers.library.finance.test_chart import asked

controls = "".join(map(chr, range(32)))
ends = "\\x7f\\x85\\u2028\\u2029\\ufeff\\ufffe\\uffff"
cars = "\U0001f697" * 60
odd = [controls, ends, cars, "x" + cars, "constructor", "__proto__", "valueOf", "length", "", " "]
odd += ["\u202e\u0645\u0631", "e" + "\u0301" * 50]
for form in ("svg", "png"):
    for kind in ("bar", "grouped", "stacked", "line", "pie"):
        names = odd[:1] if kind in ("bar", "pie") else odd[:4]
        series = {name: {label: 1.0 for label in odd} for name in names}
        looks = {"title": controls + cars, "x_title": ends + cars, "y_title": "x" + cars, "unit": ends}
        answer = asked({"series": series}, kind=kind, format=form, **looks)
        assert answer.error is None, (kind, form, answer.error)
print("drawn")
"""


def test_labels_of_any_letters_are_drawn_and_end_no_process() -> None:
    # In a process of its own: one that is aborted would take the other tests with it.
    run = subprocess.run(
        [sys.executable, "-c", ODD_LABELS], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT
    )
    assert (run.returncode, run.stdout) == (0, "drawn\n"), run.stderr[-2000:]


@pytest.mark.parametrize("kind", ["bar", "line", "grouped", "stacked", "pie"])
def test_as_many_values_as_are_allowed_can_be_drawn(kind: str) -> None:
    many = {"a": {f"{n}": float(n % 7) for n in range(2000)}}
    answer = asked({"series": many}, kind=kind, format="svg")
    told = answer.error.message if answer.error else "show less"
    assert "show less" in told, "either it is drawn, or told that it would not fit a record"


def test_a_value_in_another_currency_is_told_as_left_out() -> None:
    found = output({"table": "Item,2022,2023,2024\nRevenue,$90,$100,€120\n"})
    assert [value for _, _, value in values(found)] == [90, 100]
    assert found["left_out"] == ["revenue"]


def test_categories_and_series_stand_in_the_order_given() -> None:
    given_in = {"z": {"q9": 1, "q1": 2}, "a": {"q5": 3, "q1": 4}}
    svg = output({"series": given_in}, format="svg", kind="grouped")["svg"]
    assert svg.index(">q9<") < svg.index(">q1<") < svg.index(">q5<")
    assert svg.index(">z<") < svg.index(">a<")


def test_the_largest_answer_fits_a_record() -> None:
    for name in ("s", "营业收入" * 20):
        many = {f"{name}{n}": {f"{name}{k}": float((n * k) % 17) for k in range(66)} for n in range(30)}
        for form in ("spec", "png", "svg"):
            answer = asked({"series": many}, format=form, width=1600, height=1600, kind="grouped")
            if answer.error is None:
                assert len(json.dumps(encoded(answer.output))) < MAX_RECORD_BYTES
            else:
                assert (answer.error.code, "show less" in answer.error.message) == ("bad_input", True)
    assert asked({"series": many}).error is not None


def encoded(given: Any) -> Any:
    return given if "png" not in given else given | {"png": base64.b64encode(given["png"]).decode()}


Names = st.text(min_size=1, max_size=12)
Many = st.dictionaries(
    Names, st.dictionaries(Names, st.floats(-1e18, 1e18), min_size=1, max_size=4), min_size=1, max_size=3
)


@given(Many, st.sampled_from(["bar", "line", "grouped", "stacked"]))
def test_every_value_is_in_the_chart_and_the_chart_is_valid(
    given_in: dict[str, dict[str, float]], kind: str
) -> None:
    found = output({"series": given_in}, kind=kind)
    assert sorted(values(found)) == sorted((c, s, v) for s, its in given_in.items() for c, v in its.items())
    assert SCHEMA.is_valid(found["chart"])


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({}, "give inputs.text"),
        ({"text": "secret"}, "nothing to show"),
        ({"series": 5}, "inputs.series is"),
        ({"series": {}}, "nothing to show"),
        ({"series": {"a": {"b": float("nan")}}}, "no number within"),
        ({"series": {"a": {"b": "secret"}}}, "no number within"),
        ({"series": {"a": {"b": -1}}, "kind": "pie"}, "parts of a whole"),
        ({"series": SERIES, "kind": "pie"}, "one series"),
        ({"series": {"a": {str(n): n for n in range(2001)}}}, "at most 30 series and 2000"),
        ({"series": PARTS, "kind": "secret"}, "not allowed here"),
        ({"series": PARTS, "width": 5000}, "<= 1600"),
        ({"indicators": {}}, "no figures"),
        ({"indicators": {"figures": {"secret": 1}}}, "{item: {period"),
    ],
)
def test_bad_input_is_named_and_never_quoted(inputs: dict[str, Any], told: str) -> None:
    answer = asked(inputs)
    assert answer.error is not None
    assert (answer.error.code, told in answer.error.message) == ("bad_input", True), answer.error
    assert "secret" not in answer.error.message
