"""Python functions as capabilities."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import pytest

from schemas.messages import Failure
from workers.backends import Answer, Call, Row
from workers.backends.arguments import Arguments
from workers.backends.function import FunctionBackend, backends_of, capability
from workers.errors import BadInput, BadOutput, CapabilityError, LoadError, WorkerError


@asynccontextmanager
async def loaded(function: Any) -> AsyncIterator[FunctionBackend]:
    (backend,) = backends_of(function)
    await backend.load()
    try:
        yield backend
    finally:
        backend.close()


def row(params: dict[str, Any] | None = None, **inputs: Any) -> Row:
    return Row(inputs, params or {})


@capability("local/text/tokenize", version="3", max_batch=4, max_wait_ms=2.0, qps=50.0, calibrated=True)
def tokenize(inputs: dict[str, Any], params: dict[str, Any]) -> tuple[list[str], float]:
    """Words of a text."""
    if not inputs["text"]:
        raise ValueError("text must not be empty")
    return inputs["text"].split(params.get("by")), 0.75


async def test_one_call_a_row() -> None:
    async with loaded(tokenize) as backend:
        answers = backend.infer([row(text="a b"), row({"by": ","}, text="a,b c")])
    assert [answer.output for answer in answers] == [["a", "b"], ["a", "b c"]]
    assert answers[0].confidence == 0.75
    card = backend.card
    assert (card.side, card.capability, card.version, card.model) == (
        "local",
        "text/tokenize",
        "3",
        "tokenize",
    )
    assert (card.max_batch, card.max_wait_ms, card.max_qps, card.calibrated) == (4, 2.0, 50.0, True)
    assert (card.max_cost, card.description) == (0.0, "Words of a text.")


async def test_a_bad_row_fails_alone() -> None:
    async with loaded(tokenize) as backend:
        good, empty, absent = backend.infer([row(text="a"), row(text=""), row()])
    assert good.output == ["a"]
    assert empty.error is not None
    assert (empty.error.code, "must not be empty" in empty.error.message) == ("bad_input", True)
    assert absent.error is not None
    assert absent.error.code == "backend_error"


async def test_batches_are_one_call_and_rows_may_be_exceptions() -> None:
    calls = []

    @capability("cloud/math/double", batch=True, cost=0.5)
    def double(rows: list[Row]) -> list[Any]:
        calls.append(len(rows))
        return [BadInput("n is odd") if inputs["n"] % 2 else (inputs["n"] * 2, 1) for inputs, _ in rows]

    async with loaded(double) as backend:
        answers = backend.infer([row(n=2), row(n=3), row(n=4)])
    assert calls == [3]
    assert [answer.output for answer in answers] == [4, None, 8]
    assert answers[1].error is not None
    assert answers[1].error.message == "math/double: n is odd"
    assert backend.card.cost_per_call == backend.card.max_cost == 0.5


async def test_an_async_batch_is_one_call_too() -> None:
    calls = []

    @capability("cloud/math/double", batch=True)
    async def double(rows: list[Row]) -> list[int | Exception]:
        calls.append(len(rows))
        await asyncio.sleep(0)
        return [BadInput("n is odd") if inputs["n"] % 2 else inputs["n"] * 2 for inputs, _ in rows]

    async with loaded(double) as backend:
        answers = backend.infer([row(n=2), row(n=3), row(n=4)])
        (alone,) = backend.infer([row(n=8)])
    assert calls == [3, 1]
    assert [answer.output for answer in (*answers, alone)] == [4, None, 8, 16]
    assert answers[1].error is not None
    assert answers[1].error.code == "bad_input"


@pytest.mark.parametrize(
    "given",
    ["ab", b"ab", {"a": 1, "b": 2}, {1, 2}, None, 7, itertools.count(), [1], [1, 2, 3], iter([1])],
    ids=lambda given: type(given).__name__,
)
async def test_what_is_no_list_of_answers_is_refused_and_an_endless_one_ends(given: Any) -> None:
    @capability("local/math/odd", batch=True)
    def odd(rows: list[Row]) -> Any:
        return given

    async with loaded(odd) as backend:
        with pytest.raises(BadOutput, match=r"one answer a row|answered [123] of 2 rows"):
            backend.infer([row(n=1), row(n=2)])


async def test_async_functions_run_side_by_side() -> None:
    together: list[int] = []

    @capability("cloud/slow/echo")
    async def echo(inputs: dict[str, Any], params: dict[str, Any]) -> Any:
        together.append(1)
        while len(together) < 3:
            await asyncio.sleep(0.001)
        if inputs["n"] == 2:
            raise BadInput("not two")
        return inputs["n"]

    async with loaded(echo) as backend:
        rows = [row(n=1), row(n=2), row(n=3)]
        answers = await asyncio.wait_for(asyncio.to_thread(backend.infer, rows), timeout=10)
    assert [answer.output for answer in answers] == [1, None, 3]
    assert answers[1].error is not None


async def test_named_arguments_are_checked_and_described() -> None:
    @capability("local/text/cut")
    def cut(text: str, limit: int = 3, way: Literal["head", "tail"] = "head") -> str:
        return text[:limit] if way == "head" else text[-limit:]

    async with loaded(cut) as backend:
        rows = [row(text="abcdef"), row({"limit": 2, "way": "tail"}, text="abcdef"), row(text=7), row()]
        good, tail, wrong, missing = backend.infer([*rows])
        (enum,) = backend.infer([row(text="x", way="secret-4111")])
    assert (good.output, tail.output) == ("abc", "ef")
    for answer, told in ((wrong, "Expected `str`, got `int`"), (missing, "`text`"), (enum, "inputs.way")):
        assert answer.error is not None
        assert answer.error.code == "bad_input"
        assert told in answer.error.message
        assert "4111" not in answer.error.message
    assert backend.card.input_schema["required"] == ["text"]
    assert backend.card.input_schema["properties"]["limit"]["type"] == "integer"


@pytest.mark.parametrize(
    ("value", "output", "confidence"),
    [
        (("a", 0.5), "a", 0.5),
        (("a", None), "a", None),
        (("a", "b"), ("a", "b"), None),
        (("a", True), ("a", True), None),
        ((1, 2, 3), (1, 2, 3), None),
        (Answer("x", 0.1, cost=3.0), "x", 0.1),
        (None, None, None),
    ],
)
def test_what_a_function_returns(value: Any, output: Any, confidence: float | None) -> None:
    @capability("local/any")
    def constant(inputs: dict[str, Any], params: dict[str, Any]) -> Any:
        return value

    (answer,) = backends_of(constant)[0].infer([row()])
    assert (answer.output, answer.confidence, answer.error) == (output, confidence, None)


@pytest.mark.parametrize("value", [("a", 1.5), ("a", -0.1), ("a", math.nan), {"x": [math.inf]}, [math.nan]])
def test_numbers_that_no_caller_can_use_are_bad_output(value: Any) -> None:
    @capability("local/any")
    def constant(inputs: dict[str, Any], params: dict[str, Any]) -> Any:
        return value

    (answer,) = backends_of(constant)[0].infer([row()])
    assert answer.error is not None
    assert answer.error.code == "bad_output"


def test_two_sides_make_two_backends() -> None:
    @capability("cloud/a/b", cost=0.1)
    @capability("local/a/b")
    def both(inputs: dict[str, Any], params: dict[str, Any]) -> int:
        return 1

    assert sorted(backend.card.side for backend in backends_of(both)) == ["cloud", "local"]
    assert both({}, {}) == 1


@pytest.mark.parametrize("name", ["text/tokenize", "local", "local/", "edge/a", "local/a.b", "local/a b", ""])
def test_names_that_make_no_topic_are_refused(name: str) -> None:
    with pytest.raises(LoadError, match="capability"):
        capability(name)


def test_a_token_price_without_a_bound_leaves_the_bound_open() -> None:
    @capability("cloud/a/b", cost_per_token=0.1)
    def paid(inputs: dict[str, Any], params: dict[str, Any]) -> int:
        return 1

    assert backends_of(paid)[0].card.max_cost is None


@pytest.mark.parametrize(
    ("function", "good"),
    [
        (lambda rows: rows, True),
        (lambda rows, k=1: rows, True),
        (lambda *rows: rows, True),
        (sorted, True),
        (lambda: 1, False),
        (lambda a, b: [], False),
        (lambda *, a: [], False),
        (lambda a, *, b: [], False),
        (lambda **a: [], False),
    ],
)
def test_a_batch_function_takes_the_rows_and_nothing_else(function: Any, good: bool) -> None:
    if good:
        assert Arguments.rows_schema(function) == {}
    else:
        with pytest.raises(LoadError, match="one argument, the list"):
            capability("local/math/double", batch=True)(function)


async def test_what_exits_while_it_loads_is_a_load_error() -> None:
    @capability("local/math/one", load=lambda: sys.exit("no licence"))
    def one() -> int:
        return 1

    (backend,) = backends_of(one)
    with pytest.raises(LoadError, match="SystemExit: no licence"):
        await backend.load()


def test_star_arguments_are_refused() -> None:
    with pytest.raises(LoadError, match=r"named parameters"):

        @capability("local/a")
        def anything(*values: int) -> int:
            return len(values)


def test_rows_of_other_params_or_names_are_no_kin() -> None:
    (backend,) = backends_of(tokenize)
    assert backend.kin(row({"a": 1, "b": 2}, text="x")) == backend.kin(row({"b": 2, "a": 1}, text="y"))
    assert backend.kin(row({"a": 1}, text="x")) != backend.kin(row({"a": 2}, text="x"))
    assert backend.kin(row({"a": 1}, text="x")) != backend.kin(row(text="x"))
    assert backend.kin(row(text="x")) != backend.kin(row(word="x"))
    assert backend.kin(row(a=1, b=2)) == backend.kin(row(b=2, a=1))


async def test_a_function_that_never_returns_ends_with_its_deadline() -> None:
    ended: list[str] = []

    @capability("cloud/slow/echo")
    async def echo(name: str, wait_s: float) -> str:
        try:
            await asyncio.sleep(wait_s)
        finally:
            ended.append(name)
            if name == "stubborn":
                await asyncio.sleep(wait_s)
        return name

    async with loaded(echo) as backend:
        rows = [
            row(name=name, wait_s=wait) for name, wait in (("slow", 9.0), ("stubborn", 9.0), ("quick", 0.0))
        ]
        until = time.monotonic() + 0.2
        calls = [Call(f"r{n}/s/cloud/0", until) for n in range(3)]
        began = time.monotonic()
        slow, stubborn, quick = await asyncio.to_thread(backend.infer_calls, rows, calls)
        assert time.monotonic() - began < 5.0
    assert quick.output == "quick"
    for late in (slow, stubborn):
        assert late.error is not None
        assert late.error.code == "deadline_exceeded"
    assert ended[0] == "quick"
    assert "slow" in ended


async def test_an_async_batch_ends_with_the_last_of_its_deadlines() -> None:
    @capability("cloud/slow/batch", batch=True)
    async def never(rows: list[Row]) -> list[str]:
        await asyncio.sleep(60)
        return []

    async with loaded(never) as backend:
        now = time.monotonic()
        calls = [Call("a/s/cloud/0", now + 0.05), Call("b/s/cloud/0", now + 0.2)]
        with pytest.raises(CapabilityError, match="cancelled"):
            await asyncio.to_thread(backend.infer_calls, [row(), row()], calls)
        assert 0.15 < time.monotonic() - now < 5.0


async def test_closing_ends_calls_under_way() -> None:
    entered = threading.Event()

    @capability("cloud/slow/wait")
    async def wait(inputs: dict[str, Any], params: dict[str, Any]) -> None:
        entered.set()
        await asyncio.sleep(60)

    async with loaded(wait) as backend:
        asking = asyncio.create_task(asyncio.to_thread(backend.infer, [row()]))
        await asyncio.to_thread(entered.wait, 10)
    with contextlib.suppress(WorkerError):
        (answer,) = await asyncio.wait_for(asking, timeout=10)
        assert answer.error is not None


@pytest.mark.parametrize("code", ["bad_input", "object_missing", "overloaded", "backend_error"])
def test_a_function_may_choose_its_error(code: Any) -> None:
    @capability("local/choosing")
    def choosing(inputs: dict[str, Any], params: dict[str, Any]) -> None:
        raise CapabilityError(code, "the index is being built")

    (answer,) = backends_of(choosing)[0].infer([row()])
    assert answer.error == Failure(code=code, message="choosing: the index is being built")


def test_codes_that_are_not_a_functions_to_choose_are_refused() -> None:
    with pytest.raises(TypeError, match="bad_input, object_missing"):
        CapabilityError("internal", "x")  # type: ignore[arg-type]
    assert str(BadInput("no date", at="inputs.rows[3]")) == "no date - at inputs.rows[3]"


async def test_a_class_is_made_once_and_its_objects_are_called() -> None:
    made: list[str] = []

    @capability("cloud/nlp/kind", cost=0.1)
    @capability("local/nlp/kind")
    class Kind:
        """The share of kind words.

        Of a list read once.
        """

        def __init__(self) -> None:
            made.append("made")
            self.words = {"good"}

        def __call__(self, text: str, least: int = 1) -> tuple[float, float]:
            words = text.split()
            return sum(word in self.words for word in words) / max(least, len(words)), 1.0

        def close(self) -> None:
            made.append("closed")

    local, cloud = sorted(backends_of(Kind), key=lambda backend: backend.card.side, reverse=True)
    assert (local.card.side, local.card.model, cloud.card.max_cost) == ("local", "Kind", 0.1)
    assert local.card.description == "The share of kind words."
    assert local.card.input_schema["required"] == ["text"]
    assert local.card.output_schema == {"type": "number"}
    assert made == []
    (early,) = local.infer([row(text="good")])
    assert early.error is not None
    await local.load()
    await local.load()
    assert [answer.output for answer in local.infer([row(text="good bad"), row(text="good")])] == [0.5, 1.0]
    (wrong,) = local.infer([row(text=5)])
    assert wrong.error is not None
    assert wrong.error.code == "bad_input"
    local.close()
    assert made == ["made", "closed"]
    assert backends_of(Kind()) == ()
    assert backends_of(type("Heir", (Kind,), {})) == ()


async def test_objects_and_their_async_calls_can_be_offered_too() -> None:
    class Echo:
        async def __call__(self, text: str) -> str:
            return text

    echo = Echo()
    async with loaded(capability("local/echo", model="echo")(echo)) as backend:
        (answer,) = await asyncio.to_thread(backend.infer, [row(text="a")])
        assert answer.output == "a"
        assert backend.card.output_schema == {"type": "string"}

    @capability("local/shout")
    class Shout:
        async def __call__(self, text: str) -> str:
            return text.upper()

    async with loaded(Shout) as backend:
        (answer,) = await asyncio.to_thread(backend.infer, [row(text="a")])
        assert answer.output == "A"
