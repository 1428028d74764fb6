from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.messages import Failure, Request
from schemas.rules import parse_rules
from streams.router.decompose import Lexicon, TaskFound
from tests.helpers.routing import rules_of

BUILTIN = Lexicon(parse_rules(b"{}"))


def name_of(lexicon: Lexicon, **fields: object) -> str | None:
    found = lexicon.find(Request(**fields))  # type: ignore[arg-type]
    return found.name if isinstance(found, TaskFound) else None


def test_by_task():
    assert name_of(BUILTIN, task="traffic_forecast") == "traffic_forecast"


def test_task_wins_over_query():
    assert name_of(BUILTIN, task="traffic_forecast", query="financial report") == "traffic_forecast"


@pytest.mark.parametrize(
    ("query", "task"),
    [
        ("生成财报分析", "financial_report"),
        ("请为我 生成 财报 分析 ，谢谢", "financial_report"),
        ("请生成财报分析2024", "financial_report"),
        ("Please write the FINANCIAL   Report\nfor 2024", "financial_report"),
        ("financial\u3000report", "financial_report"),
        ("实时路况预测", "traffic_forecast"),
        ("show me live traffic!", "traffic_forecast"),
        ("看看live traffic吧", "traffic_forecast"),
        ("olive traffic", None),
        ("live trafficking", None),
        ("financialreport", None),
        ("no such thing", None),
    ],
)
def test_by_phrase(query, task):
    assert name_of(BUILTIN, query=query) == task


def test_a_later_place_counts_where_the_first_is_within_a_word():
    assert name_of(BUILTIN, query="olive traffic and live traffic") == "traffic_forecast"


def test_the_longest_phrase_wins():
    lexicon = Lexicon(rules_of(short={"phrases": ["report"]}, long={"phrases": ["weather report"]}))
    assert name_of(lexicon, query="a report: weather report") == "long"
    assert name_of(lexicon, query="a report") == "short"


def test_unknown_task_names_the_nearest_first_and_never_the_payload():
    lexicon = Lexicon(rules_of(alpha={}, intent={}, image_class={}))
    failure = lexicon.find(Request(task="intents-secret"))
    assert isinstance(failure, Failure)
    assert failure.code == "unknown_task"
    assert failure.message.endswith("known tasks: intent, alpha, image_class")
    assert "secret" not in failure.message


def test_many_tasks_are_not_all_named():
    lexicon = Lexicon(rules_of(**{f"task{n:02}": {} for n in range(30)}))
    failure = lexicon.find(Request(task="nothing"))
    assert isinstance(failure, Failure)
    assert failure.message.endswith("and 20 more")


def test_a_query_without_a_phrase_is_an_unknown_task():
    failure = BUILTIN.find(Request(query="secret words"))
    assert isinstance(failure, Failure)
    assert failure.code == "unknown_task"
    assert "financial_report" in failure.message
    assert "secret" not in failure.message


@pytest.mark.parametrize("fields", [{}, {"task": ""}, {"query": ""}, {"inputs": {"text": "hello"}}])
def test_neither_task_nor_query(fields):
    failure = BUILTIN.find(Request(**fields))
    assert isinstance(failure, Failure)
    assert failure.code == "invalid_request"


def test_rules_without_tasks():
    failure = Lexicon(rules_of()).find(Request(task="x"))
    assert isinstance(failure, Failure)
    assert "no tasks" in failure.message


@given(st.text(max_size=60), st.text(max_size=60), st.sampled_from(["生成财报分析", "financial report"]))
def test_a_phrase_between_spaces_is_always_found(before, after, phrase):
    found = name_of(BUILTIN, query=f"{before} {phrase} {after}")
    assert found in ("financial_report", "traffic_forecast")


@given(st.text(max_size=200))
def test_any_query_has_an_answer(query):
    assert isinstance(BUILTIN.find(Request(query=query)), TaskFound | Failure)
