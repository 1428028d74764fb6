"""What every backend must do: tests that each backend's own test file inherits.

    class TestMine(BackendContract):              # or RemoteContract, of one that asks elsewhere
        @pytest.fixture
        def subject(self, tmp_path: Path) -> Iterator[Subject]:
            yield Subject(make=lambda: MyBackend(...), good=lambda n: Row({"text": f"word {n}"}, {}), ...)

Nothing is skipped: leave no field of Subject out. `bad` must be a row that the backend refuses by itself; put
the word SECRET into it, which must not come back. RemoteContract wants `silent` too: a context in which the
service takes calls and answers none. FaultContract is for those that ask over HTTP; its fixture is `faulted`.
"""

from __future__ import annotations

import asyncio
import copy
import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import pytest

from schemas import codec
from schemas.messages import Partial
from schemas.values import all_finite, check_value
from tests.helpers.faulty_server import FAULTS, Asked, Fault, FaultyServer
from workers.backends import Answer, Backend, Call, RemoteBackend, Row
from workers.errors import LoadError
from workers.inference import infer
from workers.partials import cost_of

SECRET = "4111-1111-secret"
BOUND_S = 10.0
"""Nothing that a contract asks takes longer; far more than any backend here needs."""
LATE_S = 1.0
"""How much later than its deadline an answer may be on a machine that is busy."""


@dataclass(frozen=True)
class Subject:
    """One backend to be tested.

    `make` gives a new one, not loaded. `good(n)` is a sound row, `right(n, output)` whether that answers it.
    `bad` is refused. `huge` is larger than anybody means to ask: it may be answered or refused.
    `unloadable` gives one whose `load` fails, or fails itself, with LoadError.
    """

    make: Callable[[], Backend]
    good: Callable[[int], Row]
    right: Callable[[int, Any], bool]
    bad: Row
    huge: Row
    unloadable: Callable[[], Backend]
    silent: Callable[[], AbstractContextManager[Any]] = nullcontext


class BackendContract:
    """Of every backend."""

    @pytest.fixture
    async def backend(self, subject: Subject) -> Any:
        made = subject.make()
        await made.load()
        yield made
        made.close()

    async def test_it_is_a_backend_with_a_card(self, subject: Subject) -> None:
        made = subject.make()
        assert isinstance(made, Backend)
        assert made.card.max_batch >= 1
        assert made.card.capability
        assert made.card.side in ("local", "cloud")
        made.close()

    async def test_each_row_has_its_answer_in_order(self, subject: Subject, backend: Backend) -> None:
        for numbers in ([0], [1, 2, 3], [3, 1, 2, 0], [2, 2]):
            _right(subject, numbers, await _asked(backend, [subject.good(n) for n in numbers]))

    async def test_no_rows_have_no_answers(self, backend: Backend) -> None:
        assert await _asked(backend, []) == []

    async def test_a_bad_row_fails_alone_and_costs_nothing(self, subject: Subject, backend: Backend) -> None:
        rows = [subject.good(0), subject.bad, subject.good(2)]
        answers = await _asked(backend, rows)
        _right(subject, [0, 2], [answers[0], answers[2]])
        error = answers[1].error
        assert error is not None
        assert error.code == "bad_input", error
        assert SECRET not in error.message
        assert cost_of(answers[1], backend.card, bound=9.0) == 0.0

    async def test_a_huge_row_does_not_hurt_the_others(self, subject: Subject, backend: Backend) -> None:
        began = time.monotonic()
        answers = await _asked(backend, [subject.good(0), subject.huge, subject.good(1)])
        _right(subject, [0, 1], [answers[0], answers[2]])
        _publishable(answers[1])
        assert time.monotonic() - began < BOUND_S

    async def test_rows_stay_as_they_are(self, subject: Subject, backend: Backend) -> None:
        rows = [subject.good(0), subject.good(1), subject.bad]
        before = copy.deepcopy(rows)
        await _asked(backend, rows)
        assert rows == before

    async def test_kin_is_hashable_and_the_same_for_the_same(
        self, subject: Subject, backend: Backend
    ) -> None:
        row = subject.good(0)
        assert hash(backend.kin(row)) == hash(backend.kin(copy.deepcopy(row)))
        assert backend.kin(row) == backend.kin(copy.deepcopy(row))
        other = Row(row.inputs, {**row.params, "some other param": 1})
        assert backend.kin(row) != backend.kin(other), "params rule the whole batch"
        hash(backend.kin(subject.bad))
        hash(backend.kin(subject.huge))

    async def test_threads_get_their_own_answers(self, subject: Subject, backend: Backend) -> None:
        threads = max(2, int(getattr(backend, "threads", 1)))
        batches = [[n % 4, (n + 1) % 4] for n in range(threads)]
        found = await asyncio.gather(
            *(_asked(backend, [subject.good(n) for n in numbers]) for numbers in batches)
        )
        for numbers, answers in zip(batches, found, strict=True):
            _right(subject, numbers, answers)

    async def test_one_that_cannot_load_says_so(self, subject: Subject) -> None:
        with pytest.raises(LoadError) as caught:
            await subject.unloadable().load()
        assert str(caught.value)

    async def test_it_loads_once_closes_twice_and_loads_again(self, subject: Subject) -> None:
        before = set(threading.enumerate())
        made = subject.make()
        made.close()
        for _ in range(2):
            await made.load()
            await made.load()
            _right(subject, [1], await _asked(made, [subject.good(1)]))
            made.close()
            made.close()
        await _gone(before)


class RemoteContract(BackendContract):
    """Of backends that ask elsewhere."""

    async def test_it_takes_calls(self, subject: Subject) -> None:
        assert isinstance(subject.make(), RemoteBackend)

    async def test_asked_before_it_is_loaded_it_says_so(self, subject: Subject) -> None:
        with pytest.raises(LoadError, match="not loaded"):
            subject.make().infer([subject.good(0)])

    async def test_silence_ends_with_the_deadline(self, subject: Subject, backend: Backend) -> None:
        began = time.monotonic()
        with subject.silent():
            answers = await _asked(backend, [subject.good(0), subject.good(1)], left_s=0.5)
            took = time.monotonic() - began
        assert took < 0.5 + LATE_S
        for answer in answers:
            assert answer.error is not None
            assert answer.error.code in ("backend_error", "deadline_exceeded")
            _publishable(answer)

    async def test_each_row_has_its_own_deadline(self, subject: Subject, backend: Backend) -> None:
        now = time.monotonic()
        rows, calls = [subject.good(0), subject.good(1)], [Call("r/s/cloud/1", now - 1), _call(1)]
        late, timely = await asyncio.to_thread(infer, backend, rows, lambda _: False, calls)
        assert late.error is not None
        assert cost_of(late, backend.card, bound=9.0) == 0.0, "it was never asked"
        _right(subject, [1], [timely])

    async def test_closing_ends_what_waits(self, subject: Subject) -> None:
        made = subject.make()
        await made.load()
        with subject.silent():
            waiting = asyncio.create_task(_asked(made, [subject.good(0)], left_s=60.0))
            await asyncio.sleep(0.3)
            began = time.monotonic()
            made.close()
            (answer,) = await asyncio.wait_for(waiting, timeout=BOUND_S)
        assert time.monotonic() - began < 5.0
        assert answer.error is not None


@dataclass(frozen=True)
class Faulted:
    """A backend and the service that it asks, whose calls tell their rows.

    `make` gives a new backend of a capability that costs something; `number_of` the `n` of the `good(n)` that
    a call asks. Its calls must not be made again where they may have been carried out.
    """

    server: FaultyServer
    make: Callable[[], Backend]
    good: Callable[[int], Row]
    right: Callable[[int, Any], bool]
    number_of: Callable[[Asked], int]


class FaultContract:
    """Of backends that ask over HTTP: whatever the service does, the caller is told in time, the other rows
    are answered, nothing is paid twice, and nothing stays broken.
    """

    @pytest.fixture
    async def broken(self, faulted: Faulted) -> Any:
        made = faulted.make()
        await made.load()
        yield made
        made.close()

    @pytest.mark.parametrize("name", FAULTS)
    async def test_a_fault(self, faulted: Faulted, broken: Backend, name: str) -> None:
        server, fault = faulted.server, FAULTS[name]
        server.fault = lambda asked: fault if faulted.number_of(asked) == 1 else None
        began = time.monotonic()
        first, bad, last = await _asked(broken, [faulted.good(n) for n in range(3)], left_s=1.0)
        assert time.monotonic() - began < 1.0 + LATE_S
        for number, answer in ((0, first), (2, last)):
            assert answer.error is None
            assert faulted.right(number, answer.output)
        assert bad.error is not None
        assert bad.error.code in ("bad_input", "backend_error")
        assert SECRET not in bad.error.message
        assert max(server.paid.values()) == 1, "somebody paid twice"
        if fault.paid:
            assert cost_of(bad, broken.card, bound=9.0) > 0.0, "what may have been done counts as paid"
        server.fault = lambda _: None
        (again,) = await _asked(broken, [faulted.good(3)])
        if "too late" in name:
            assert again.error is not None, "it asked for no calls"
            assert "wants no calls" in again.error.message
            assert again.cost == 0.0
        else:
            assert again.error is None, again.error

    async def test_a_cut_connection_is_not_used_again(self, faulted: Faulted, broken: Backend) -> None:
        faulted.server.fault = lambda _: Fault(drop=True)
        for n in range(3):
            (answer,) = await _asked(broken, [faulted.good(n)])
            assert answer.error is None, answer.error
            await asyncio.sleep(0.05)

    async def test_a_connection_is_used_again(self, faulted: Faulted, broken: Backend) -> None:
        for n in range(5):
            assert (await _asked(broken, [faulted.good(n)]))[0].error is None
        assert faulted.server.connections == 1

    async def test_told_to_come_back_it_comes_back(self, faulted: Faulted, broken: Backend) -> None:
        busy = Fault(429, {"retry-after": "1"}, b"{}", paid=False)
        faulted.server.fault = lambda _: busy if len(faulted.server.calls) == 1 else None
        began = time.monotonic()
        (answer,) = await _asked(broken, [faulted.good(0)], left_s=4.0)
        assert answer.error is None
        assert time.monotonic() - began >= 1.0
        assert len(faulted.server.calls) == 2
        assert set(faulted.server.paid.values()) == {1}

    async def test_nobody_there_and_back_again(self, faulted: Faulted, broken: Backend) -> None:
        assert (await _asked(broken, [faulted.good(0)]))[0].error is None
        faulted.server.stop()
        (answer,) = await _asked(broken, [faulted.good(0)], left_s=2.0)
        faulted.server.start()
        assert answer.error is not None
        assert "cannot be reached" in answer.error.message
        assert answer.cost == 0.0
        assert (await _asked(broken, [faulted.good(0)]))[0].error is None


async def _asked(backend: Backend, rows: Sequence[Row], left_s: float = BOUND_S) -> list[Answer]:
    """As a worker asks: in a thread, with a call a row, the rows one by one where the batch fails."""
    calls = [_call(n, left_s) for n in range(len(rows))]
    work = asyncio.to_thread(infer, backend, list(rows), lambda _: False, calls)
    return await asyncio.wait_for(work, timeout=left_s + 2 * BOUND_S)


def _call(number: int, left_s: float = BOUND_S) -> Call:
    return Call(f"request/step/cloud/{number}", time.monotonic() + left_s)


def _right(subject: Subject, numbers: Sequence[int], answers: Sequence[Answer]) -> None:
    assert [answer.error for answer in answers] == [None] * len(numbers)
    for number, answer in zip(numbers, answers, strict=True):
        assert subject.right(number, answer.output), f"row {number} got {answer.output!r}"
        _publishable(answer)


def _publishable(answer: Answer) -> None:
    """It can travel: as the worker writes it, so the aggregator reads it."""
    check_value(answer.output, "output")
    assert answer.confidence is None or 0.0 <= answer.confidence <= 1.0
    assert answer.cost is None or (answer.cost >= 0.0 and math.isfinite(answer.cost))
    assert all(isinstance(name, str) and count >= 0 for name, count in answer.usage.items())
    partial = Partial(
        subtask="r/s/cloud/1",
        deadline=1,
        output=answer.output,
        confidence=answer.confidence,
        usage=answer.usage,
        error=answer.error,
    )
    assert all_finite(answer.output)
    assert codec.decode(codec.encode(partial), Partial).error == answer.error


async def _gone(before: set[threading.Thread]) -> None:
    """The threads that came after `before` end soon; those of this test's own pools may stay."""
    until = time.monotonic() + BOUND_S
    while left := [t for t in set(threading.enumerate()) - before if not t.name.startswith("asyncio_")]:
        assert time.monotonic() < until, f"threads stay: {left}"
        await asyncio.sleep(0.02)
