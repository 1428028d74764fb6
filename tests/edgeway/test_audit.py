"""The audit: which requests of a log have no answer."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeway.audit import Ledger, answer, asked_of
from schemas import codec, ids
from schemas.messages import Plan, Request, Result


@dataclass(frozen=True)
class Row:
    value: bytes | None
    offset: int = 0
    timestamp: int = 1_000_000
    topic: str = "requests"
    partition: int = 0
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


def asking(request: Request, offset: int = 0) -> Row:
    return Row(codec.encode(request), offset)


def answering(request_id: str, tenant: str | None = None) -> Row:
    return Row(codec.encode(Result(id=request_id, tenant=tenant, status="ok")), topic="results")


def test_unanswered_only_after_deadline_and_grace() -> None:
    ledger = Ledger()
    ledger.request(asking(Request(id="a", task="t", deadline_ms=1000)))
    ledger.request(asking(Request(id="b", task="t", deadline_ms=1000), 1))
    ledger.result(answering("b"))
    assert ledger.unanswered(1_003_000, 2000) == []
    assert ledger.waiting(1_003_000, 2000) == 1
    assert [asked.id for asked in ledger.unanswered(1_003_001, 2000)] == ["a"]
    assert ledger.waiting(1_003_001, 2000) == 0
    assert (ledger.requests, ledger.answered) == (2, 1)


def test_a_missing_id_is_derived_as_the_router_does() -> None:
    row = asking(Request(task="t"), offset=7)
    expected = ids.derived("requests", 0, 7, row.timestamp)
    asked = asked_of(row)
    assert asked is not None
    assert asked.id == expected
    ledger = Ledger()
    ledger.request(row)
    ledger.result(answering(expected))
    assert ledger.unanswered(10**9, 0) == []


def test_tenants_are_kept_apart() -> None:
    ledger = Ledger()
    ledger.request(asking(Request(id="a", task="t", tenant="x")))
    ledger.result(answering("a", "y"))
    ledger.result(answering("a"))
    assert len(ledger.unanswered(10**9, 0)) == 1
    ledger.result(answering("a", "x"))
    assert ledger.unanswered(10**9, 0) == []


def test_deadlines() -> None:
    assert asked_of(asking(Request(id="a"))).deadline == 1_030_000  # type: ignore[union-attr]
    assert asked_of(asking(Request(id="a", deadline_ms=600_000))).deadline == 1_600_000  # type: ignore[union-attr]


def test_damaged_records_count_by_whether_an_id_can_be_read() -> None:
    ledger = Ledger()
    ledger.request(Row(b'{"id": "known", "task": 5}'))
    ledger.request(Row(b"\xc1\xff"))
    ledger.request(Row(None))
    assert [asked.id for asked in ledger.unanswered(10**9, 0)] == ["known"]
    assert ledger.unreadable == 2


def test_repeated_ids_are_asked_once() -> None:
    ledger = Ledger()
    for offset in range(3):
        ledger.request(asking(Request(id="a", task="t"), offset))
    assert ledger.repeated == 2
    assert len(ledger.unanswered(10**9, 0)) == 1


@pytest.mark.parametrize("second", [True, False])
def test_a_repeated_id_with_other_content_awaits_its_conflict(second: bool) -> None:
    first, other = Request(id="a", task="t", tenant="x"), Request(id="a", task="u", tenant="x")
    ledger = Ledger()
    ledger.request(asking(first))
    ledger.request(asking(other, 1))
    ledger.result(answering("a", "x"))
    (late,) = ledger.unanswered(10**9, 0)
    assert late.id == ids.conflicting("a", codec.digest_of(other))
    assert answer(late).request.id == late.id
    ledger.result(answering(ids.conflicting("a", codec.digest_of(other if second else first)), "x"))
    assert ledger.unanswered(10**9, 0) == []


def test_results_that_are_none_strike_out_nothing() -> None:
    ledger = Ledger()
    ledger.request(asking(Request(id="a")))
    ledger.result(Row(b"junk", topic="results"))
    ledger.result(Row(codec.encode(Request(id="a")), topic="results"))
    assert len(ledger.unanswered(10**9, 0)) == 1


def test_the_answer_is_a_plan_for_the_aggregator() -> None:
    row = Row(codec.encode(Request(id="a", task="t", tenant="x", reply_to="results.mine"), "json"))
    asked = asked_of(row)
    assert asked is not None
    plan = answer(asked)
    assert codec.decode(codec.encode(plan), Plan) == plan
    assert plan.answer is not None
    assert plan.answer.error is not None
    assert (plan.answer.status, plan.answer.error.code, plan.answer.id) == ("error", "unanswered", "a")
    assert (plan.request.id, plan.request.tenant, plan.request.reply_to) == ("a", "x", "results.mine")
    assert (plan.request.reply_format, plan.request.deadline) == ("json", 1_030_000)
    assert plan.request.digest == plan.answer.digest is not None


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=30))
def test_unanswered_are_the_asked_without_answer(events: list[tuple[int, bool]]) -> None:
    asked = {f"r{number}" for number, is_request in events if is_request}
    answered = {f"r{number}" for number, is_request in events if not is_request}
    ledger = Ledger()
    for offset, (number, is_request) in enumerate(events):
        if is_request:
            ledger.request(asking(Request(id=f"r{number}"), offset))
    for request_id in answered:
        ledger.result(answering(request_id))
    assert {late.id for late in ledger.unanswered(10**9, 0)} == asked - answered


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("tu")), max_size=20), st.integers(0, 3))
def test_the_parts_add_up(events: list[tuple[int, str]], answers: int) -> None:
    ledger = Ledger()
    for offset, (number, task) in enumerate(events):
        ledger.request(asking(Request(id=f"r{number}", task=task), offset))
    ledger.request(Row(b"junk", len(events)))
    for number in range(answers):
        ledger.result(answering(f"r{number}"))
    late = len(ledger.unanswered(10**9, 0))
    assert ledger.requests == ledger.answered + late + ledger.repeated + ledger.unreadable
