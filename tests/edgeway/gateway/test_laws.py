"""Laws of the pure parts: places and bytes come back, a form is the same however it was cut."""

from __future__ import annotations

import contextlib
from collections import Counter

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeway.gateway.events import time_of
from edgeway.gateway.lobby import Lobby, Seat
from edgeway.gateway.multipart import FormReader, Part
from edgeway.gateway.prefer import Preference, preference_of
from workers.http.problems import Refused

TENANTS = ("acme", "beta", None)
MOST, MOST_BYTES, MOST_OPEN = 4, 100, 2
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("seat", "add", "drop", "join", "leave_open", "leave", "answer", "wait")),
        st.integers(0, 60),
        st.sampled_from(TENANTS),
    ),
    max_size=60,
)


class Model:
    """A lobby, and who is in it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.answered: set[str] = set()
        self.lobby = Lobby(MOST, MOST_BYTES, self.answered.__contains__, lambda: self.now)
        self.seats: list[Seat] = []
        self.joined: dict[int, str] = {}
        self.keys = 0

    def step(self, what: str, number: int, tenant: str | None) -> None:
        if what == "seat":
            self.seats.append(self.lobby.seat())
        elif what == "wait":
            self.now += number / 10
        elif what == "answer":
            self.answered.add(f"r{number % max(1, self.keys)}")
        elif self.seats:
            seat = self.seats[number % len(self.seats)]
            if what == "add":
                seat.add(number)
            elif what == "drop":
                seat.drop_body()
            elif what == "join" and id(seat) not in self.joined:
                seat.join(tenant, MOST_OPEN)
                self.joined[id(seat)] = tenant or ""
            elif what == "leave_open":
                self.keys += 1
                seat.leave_open(f"r{self.keys}", self.now + 5.0)
                seat.leave()
                self.seats.remove(seat)
            elif what == "leave":
                seat.leave()
                seat.leave()
                self.seats.remove(seat)


@given(STEPS)
def test_places_and_bytes_are_bounded_and_come_back(steps: list[tuple[str, int, str | None]]) -> None:
    model = Model()
    for step in steps:
        with contextlib.suppress(Refused):
            model.step(*step)
        assert model.lobby.seats == len(model.seats)
        assert 0 <= model.lobby.bytes == sum(seat.bytes for seat in model.seats) <= MOST_BYTES
        assert model.lobby.vacant.is_set() == (not model.seats)
        in_seats = Counter(seat._tenant for seat in model.seats if seat._tenant)
        assert all(model.lobby._tenants[tenant] >= count for tenant, count in in_seats.items())
        assert max(in_seats.values(), default=0) <= MOST_OPEN
    for seat in model.seats:
        seat.leave()
    model.now += 10.0
    model.lobby.prune()
    assert (model.lobby.open, model.lobby.bytes, model.lobby._tenants) == (0, 0, {})


@settings(max_examples=60)
@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.binary(max_size=300), min_size=1, max_size=5
    ),
    st.data(),
)
def test_a_form_is_the_same_however_it_is_cut(parts: dict[str, bytes], data: st.DataObject) -> None:
    request = httpx.Request("POST", "http://g", files={name: ("f", body) for name, body in parts.items()})
    raw = request.read()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    reader = FormReader(request.headers["content-type"])
    for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True):
        reader.feed(raw[start:end])
    assert {part.name: bytes(part.body) for part in reader.parts()} == parts
    assert all(part.is_file for part in reader.parts())


@given(st.binary(max_size=300))
def test_bytes_that_are_no_form_are_refused(raw: bytes) -> None:
    with pytest.raises(Refused, match="form"):
        parts_of(raw)


def parts_of(raw: bytes) -> list[Part]:
    reader = FormReader("multipart/form-data; boundary=b")
    reader.feed(raw)
    return reader.parts()


@pytest.mark.parametrize(
    ("headers", "preference"),
    [
        ([], Preference()),
        (["respond-async"], Preference(0.0, "respond-async")),
        (["Respond-Async, wait=10"], Preference(10.0, "respond-async, wait=10")),
        (["handling=lenient", 'wait="5"'], Preference(5.0, "wait=5")),
        (["wait=0"], Preference(0.0, "wait=0")),
        (["wait=99999999999999999999"], Preference(3600.0, "wait=3600")),
        (["wait=soon"], Preference()),
        (["wait=-1, wait=2"], Preference()),
        (["respond-async;foo=1"], Preference(0.0, "respond-async")),
    ],
)
def test_what_a_caller_prefers(headers: list[str], preference: Preference) -> None:
    assert preference_of(headers) == preference


@pytest.mark.parametrize(
    ("text", "at"),
    [(None, None), ("", None), ("123-4", 123), ("x-4", None), ("9" * 20 + "-1", None), ("7", 7)],
)
def test_where_a_reader_of_events_was(text: str | None, at: int | None) -> None:
    assert time_of(text) == at
