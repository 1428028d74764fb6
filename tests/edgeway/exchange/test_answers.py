"""Answers and those who wait."""

from __future__ import annotations

import asyncio

import pytest

from edgeway.errors import ExchangeClosed, ExchangeFull
from edgeway.exchange.answers import Answers, Wanted, conflict_key
from edgeway.exchange.expected import Expected
from edgeway.exchange.ports import Sent
from edgeway.exchange.remembered import Remembered
from schemas import codec, ids
from schemas.messages import Failure, Result
from tests.helpers.aggregation import Entry


def record(result: Result, key: str | None = None, value: bytes | None = None) -> Entry:
    key = ids.scoped(result.tenant, result.id) if key is None else key
    return Entry("results", 0, 0, 5, key.encode(), codec.encode(result) if value is None else value)


def answers(*, most: int = 10, all_of_them: bool = True) -> Answers:
    return Answers(Remembered(10**6), Expected(), most, all_of_them=all_of_them)


def ok(name: str = "a", **fields: object) -> Result:
    return Result(id=name, status="ok", **fields)  # type: ignore[arg-type]


def conflict(sent: Sent) -> Result:
    tenant, name = ids.unscoped(sent.key)
    return Result(
        id=ids.conflicting(name, sent.digest),
        tenant=tenant,
        status="error",
        digest=sent.digest,
        error=Failure(code="id_conflict", message="used"),
    )


async def test_the_first_result_is_the_answer_of_all_who_wait() -> None:
    table = answers()
    waiting = [Wanted("a"), Wanted(Sent("a", "a", "d"))]
    futures = [table.wait(wanted) for wanted in waiting]
    table.take([record(ok("b")), record(ok(output=1, digest="d")), record(ok(output=2, digest="d"))])
    assert [(await future).output for future in futures] == [1, 1]
    for wanted in waiting:
        table.leave(wanted)
    assert table.waiting == 0
    assert table._waiters == {}
    found = table.known(b"a")
    assert found is not None
    assert found.output == 1


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("tenant", [None, "t1"])
async def test_other_content_under_the_id_is_answered_by_its_own_conflict(
    late: bool, tenant: str | None
) -> None:
    table = answers()
    sent = Sent(ids.scoped(tenant, "a"), "a", "mine")
    other = Sent(sent.key, "a", "another")
    came = [
        record(ok(output=1, digest="first", tenant=tenant)),
        record(conflict(other)),
        record(conflict(sent)),
    ]
    if late:
        table.take(came)
        found = table.find(Wanted(sent))
        assert found is not None
    else:
        wanted = Wanted(sent)
        future = table.wait(wanted)
        table.take(came)
        found = await future
    assert found.id == ids.conflicting("a", "mine")
    assert found.error is not None
    assert found.error.code == "id_conflict"
    assert ids.scoped(tenant, found.id).encode() == conflict_key(sent)


async def test_only_the_answers_of_ones_own_are_kept_without_memory() -> None:
    expected = Expected()
    table = Answers(Remembered(10**6), expected, 10, all_of_them=False)
    expected.add(b"a", b"a~", 1)
    table.take([record(ok("a", output=1)), record(ok("b", output=1))])
    assert table.known(b"a") is not None
    assert table.known(b"b") is None
    assert not expected.is_open(b"a")


async def test_what_is_no_result_is_passed_over() -> None:
    table = answers()
    wanted = Wanted("a")
    future = table.wait(wanted)
    table.take([record(ok(), value=b"\xc1"), record(ok("b"), key="a"), record(ok(output=1))])
    assert (await future).output == 1
    table.take([record(ok("c"), value=b"{")])
    assert table.known(b"c") is None
    table.take([record(ok("c", output=3))])
    found = table.known(b"c")
    assert found is not None
    assert found.output == 3


async def test_the_waiting_are_bounded_and_closing_fails_them() -> None:
    table = answers(most=2)
    waiting = [Wanted("a"), Wanted("b")]
    futures = [table.wait(wanted) for wanted in waiting]
    with pytest.raises(ExchangeFull):
        table.wait(Wanted("c"))
    table.leave(waiting[0])
    third = table.wait(Wanted("c"))
    table.close()
    for future in (futures[1], third):
        with pytest.raises(ExchangeClosed):
            await future
    assert not futures[0].done()
    with pytest.raises(ExchangeClosed):
        table.wait(Wanted("d"))
    await asyncio.sleep(0)
