"""Rows are asked together, and apart where that fails: none is lost, none is asked again once answered."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.cards import Card
from workers.backends import Answer, Call
from workers.backends.open_inference_calls import Apart, Item, chunks, together
from workers.backends.open_inference_status import trouble_of
from workers.backends.remote_faults import Trouble
from workers.errors import BadInput

CARD = Card(capability="a/b", side="cloud", version="1", model="m", max_cost=0)


def item(place: int, size: int = 1, until: float = math.inf) -> Item:
    return Item(place, (np.zeros(size),), Call(f"r/s/cloud/{place}", until))


class Service:
    """Fails where one of the rows is bad, and counts its calls."""

    def __init__(self, bad: set[int], error: Exception) -> None:
        self.bad, self.error = bad, error
        self.calls = 0
        self.answered: list[int] = []

    async def ask(self, items: Sequence[Item]) -> list[Answer]:
        self.calls += 1
        if any(one.place in self.bad for one in items):
            raise self.error
        self.answered += [one.place for one in items]
        return [Answer(one.place) for one in items]


async def answers(service: Service, count: int, *, repeatable: bool = True) -> dict[int, Answer]:
    apart = Apart(CARD, "host", service.ask, repeatable=repeatable)
    found = await apart.answers([item(place) for place in range(count)])
    assert [place for place, _ in found] == list(range(count))
    return dict(found)


@given(st.integers(1, 40).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1)))))
async def test_inputs_that_are_refused_are_found(case: tuple[int, set[int]]) -> None:
    count, bad = case
    for error in (BadInput("too large"), trouble_of("INVALID_ARGUMENT", "")):
        service = Service(bad, error)
        found = await answers(service, count, repeatable=False)
        for place, answer in found.items():
            if place in bad:
                assert answer.error is not None
                assert answer.error.code == "bad_input"
                assert answer.cost == 0.0
            else:
                assert answer.output == place
        assert sorted(service.answered) == sorted(set(range(count)) - bad)
        assert service.calls <= 2 * count - 1


@given(
    st.integers(2, 64).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1), max_size=2)))
)
async def test_two_rows_over_which_a_model_fails_are_found(case: tuple[int, set[int]]) -> None:
    count, bad = case
    service = Service(bad, trouble_of("INTERNAL", "boom"))
    found = await answers(service, count)
    assert {place for place, answer in found.items() if answer.error is not None} == bad
    assert all(found[place].cost is None for place in bad), "they may have been carried out"


async def test_a_model_that_fails_on_all_is_not_asked_over_and_over() -> None:
    service = Service(set(range(64)), trouble_of("INTERNAL", "boom"))
    found = await answers(service, 64)
    assert all(answer.error is not None and answer.error.code == "backend_error" for answer in found.values())
    assert service.calls < 64


@pytest.mark.parametrize(
    ("error", "repeatable"),
    [
        (trouble_of("INTERNAL", "boom"), False),
        (trouble_of("UNAVAILABLE", "queue is full"), True),
        (trouble_of("NOT_FOUND", "no model"), True),
        (trouble_of("UNAUTHENTICATED", ""), True),
    ],
)
async def test_what_halving_cannot_mend_is_asked_once(error: Trouble, repeatable: bool) -> None:
    service = Service({1}, error)
    found = await answers(service, 8, repeatable=repeatable)
    assert service.calls == 1
    assert all(answer.error is not None for answer in found.values())


@given(st.lists(st.tuples(st.integers(1, 3), st.sampled_from("ab")), max_size=30), st.integers(1, 5))
def test_chunks_hold_every_row_once_with_its_like(rows: list[tuple[int, str]], most: int) -> None:
    items = [item(place, size) for place, (size, _) in enumerate(rows)]
    found = chunks(items, most, [params for _, params in rows])
    assert sorted(one.place for chunk in found for one in chunk) == list(range(len(rows)))
    for chunk in found:
        assert len(chunk) <= most
        assert len({rows[one.place] for one in chunk}) == 1
    full = sum(len(chunk) == most for chunk in found)
    assert len(found) - full <= len(set(rows)), "at most one call of each kind is not full"


def test_several_rows_have_one_key_and_wait_for_the_last() -> None:
    assert together([item(3, until=5.0)]) == Call("r/s/cloud/3", 5.0)
    first, again = together([item(1, until=2.0), item(2, until=9.0)]), together([item(1), item(2)])
    assert first.subtask == again.subtask != together([item(2), item(1)]).subtask
    assert first.until == 9.0
    assert together([item(1), Item(2, (), Call("", 1.0))]).subtask == "", "nobody's key is for both"
