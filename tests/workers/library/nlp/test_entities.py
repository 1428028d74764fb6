"""`nlp/entities`: people, organisations, places, money, dates; English and Chinese."""

from __future__ import annotations

import hashlib
import time
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.demo.samples import requests
from tests.workers.library.nlp.asking import output, refusal
from training.entities import own_rows, quality, score
from workers.backends.function import backends_of
from workers.library.nlp.entities import entities, find_entities, warm
from workers.library.nlp.names import MODELS
from workers.models.cards import read_card

BACKENDS = {b.card.side: b for b in backends_of(entities)}
ENTITIES = BACKENDS["local"]


@pytest.fixture(autouse=True, scope="module")
def read() -> None:
    """Before the first example of a property test, whose time is bounded."""
    warm()


def found(text: str, today: date | None = None) -> dict[str, list[str]]:
    kinds: dict[str, list[str]] = {}
    for entity in find_entities(text, today):
        kinds.setdefault(entity.kind, []).append(entity.text)
    return kinds


def test_an_english_text() -> None:
    text = (
        "Northwind Valley Instruments Inc. reported revenue of $1.26 billion for Q3 2025. Jane Doe, chief"
        " executive, said in Berlin on 12 March 2025 that Deutsche Bank had bought 5% of the shares."
    )
    assert found(text) == {
        "organization": ["Northwind Valley Instruments Inc.", "Deutsche Bank"],
        "money": ["$1.26 billion"],
        "period": ["Q3 2025"],
        "person": ["Jane Doe"],
        "place": ["Berlin"],
        "date": ["12 March 2025"],
        "percentage": ["5%"],
    }


def test_a_chinese_text() -> None:
    text = (
        "星河智造股份有限公司2025年第三季度实现营业收入12.6亿元，同比增长20%。董事长王伟在北京表示，"
        "中国人民银行2025年9月1日宣布降息。李小龙出生于美国。"
    )
    assert found(text) == {
        "organization": ["星河智造股份有限公司", "中国人民银行"],
        "period": ["2025年第三季度"],
        "money": ["12.6亿元"],
        "percentage": ["20%"],
        "person": ["王伟", "李小龙"],
        "place": ["北京", "美国"],
        "date": ["2025年9月1日"],
    }


@pytest.mark.parametrize("number", [0, 1])
def test_the_report_of_the_template_is_read_as_the_demo_reads_it(number: int) -> None:
    said = output(ENTITIES, requests()[number]["inputs"])
    money = [entity["value"] for entity in said["entities"] if entity["kind"] == "money"]
    assert money == [1.26e9, 1.05e9, 7.56e8, 6.72e8, 1.89e8, 1.26e8, 4.82e9, 1.928e9]
    assert sum(entity["kind"] == "date" for entity in said["entities"]) == 1
    assert said["companies"][0] in ("星河智造股份有限公司", "Northwind Valley Instruments Inc.")
    assert said["periods"] in (["2025年第三季度"], ["Q3 2025"])
    assert said["revenue"] == 1.26e9


def test_a_name_ends_where_a_date_begins() -> None:
    assert found("王伟昨天在北京说。") == {"person": ["王伟"], "date": ["昨天"], "place": ["北京"]}


def test_values_are_normalised() -> None:
    said = output(ENTITIES, {"text": "昨天付款3.2亿元，增长百分之十二点五。"}, today="2024-05-01")
    values = {entity["kind"]: entity for entity in said["entities"]}
    assert values["date"]["value"] == "2024-04-30"
    assert (values["money"]["value"], values["money"]["currency"], values["money"]["scale"]) == (
        3.2e8,
        "CNY",
        1e8,
    )
    assert values["percentage"]["value"] == 12.5


@pytest.mark.parametrize(
    ("text", "company"),
    [
        ("Smith & Sons Ltd. is closed.", "Smith & Sons Ltd."),
        ("The Group grew.", None),
        ("他收购华远能源集团有限公司的股份", "华远能源集团有限公司"),
        ("根据东方海川有限公司公告", "东方海川有限公司"),
    ],
)
def test_companies_by_their_suffix(text: str, company: str | None) -> None:
    assert (company in found(text).get("organization", [])) == (company is not None)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_cards_state_what_is_measured_on_sentences_that_were_not_trained_on(language: str) -> None:
    folder = MODELS / f"entities-{language}" / "1"
    card = read_card(folder)
    assert card["quality"] == quality(card["figures"])
    for name, digest in card["sha256"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert card["size_bytes"] < 6_000_000
    told = card["figures"][0]
    assert told["data"] == f"entities_{language}"
    rows = own_rows(language)
    assert len(rows) == 60
    assert score(rows)["all"]["f1"] == pytest.approx(told["all"]["f1"], abs=0.01)


TEXTS = st.text(st.characters(codec=None), max_size=200) | st.text(
    "Jane Doe of Acme Ltd. 王伟在北京 $1.2m 3亿元 2024年 \ud800\n.。", max_size=200
)


@settings(max_examples=60)
@given(TEXTS.filter(str.strip))
def test_entities_are_parts_in_order_and_the_same_each_time(text: str) -> None:
    said = output(ENTITIES, {"text": text})
    end = 0
    for entity in said["entities"]:
        assert end <= entity["start"] < entity["end"]
        assert text[entity["start"] : entity["end"]] == entity["text"] == entity["text"].strip()
        end = entity["end"]
    assert output(ENTITIES, {"text": text}) == said


@pytest.mark.parametrize("part", ["x", "Aa ", "中", "$1 ", "2024年", "公司", "A B C D Inc "])
def test_the_time_is_bounded(part: str) -> None:
    begun = time.process_time()
    output(ENTITIES, {"text": part * (10_000 // len(part))})
    assert time.process_time() - begun < 2


def test_it_is_offered_on_both_sides_at_no_cost() -> None:
    assert set(BACKENDS) == {"local", "cloud"}
    assert all(
        b.card.cacheable and b.card.cost_per_call == 0 and "F1" in b.card.quality for b in BACKENDS.values()
    )


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({}, "no text"),
        ({"text": "  "}, "no text"),
        ({"text": {"a": 1}}, "Expected `str`"),
        ({"text": "x" * 100_001}, "at most 100000"),
        ({"text": "x", "today": "soon"}, "inputs.today"),
    ],
)
def test_bad_input_is_told(inputs: dict[str, Any], told: str) -> None:
    assert told in refusal(ENTITIES, inputs)
