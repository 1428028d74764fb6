"""Functions keep the contract of backends: plain, async, and in batches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.workers.backends.contract import SECRET, BackendContract, Subject
from workers.backends import Row
from workers.backends.function import FunctionBackend, backends_of, capability
from workers.errors import BadInput, LoadError

LENGTH = 10_000


def _double(n: int) -> int:
    """Twice a number."""
    if n < 0:
        raise BadInput("n is below 0")
    return 2 * n


async def _double_slowly(n: int) -> int:
    await asyncio.sleep(0)
    return _double(n)


def _double_all(rows: list[Row]) -> list[int | Exception]:
    return [_one(row) for row in rows]


def _one(row: Row) -> int | Exception:
    n = row.inputs.get("n")
    return 2 * n if isinstance(n, int) else BadInput("n is no number")


def _failing() -> None:
    raise OSError("no such model file")


def _subject(function: Callable[..., Any], **options: Any) -> Subject:
    def make(**more: Any) -> FunctionBackend:
        return backends_of(capability("local/math/double", **options, **more)(function))[-1]

    return Subject(
        make=make,
        good=lambda n: Row({"n": n}, {}),
        right=lambda n, output: output == 2 * n,
        bad=Row({"n": SECRET}, {}),
        huge=Row({"n": SECRET * LENGTH}, {}),
        unloadable=lambda: make(load=_failing),
    )


class TestPlain(BackendContract):
    @pytest.fixture
    def subject(self) -> Subject:
        return _subject(_double)


class TestAsync(BackendContract):
    @pytest.fixture
    def subject(self) -> Subject:
        return _subject(_double_slowly)


class TestBatch(BackendContract):
    @pytest.fixture
    def subject(self) -> Subject:
        return _subject(_double_all, batch=True)


async def test_what_is_loaded_once_is_there_for_every_call() -> None:
    loads: list[str] = []

    @capability("local/counted", load=lambda: loads.append("loaded"))
    def counted() -> int:
        return len(loads)

    (backend,) = backends_of(counted)
    await backend.load()
    await backend.load()
    (answer,) = backend.infer([Row({}, {})])
    assert (answer.output, loads) == (1, ["loaded"])
    (broken,) = backends_of(capability("local/broken", load=_failing)(lambda inputs, params: 1))
    with pytest.raises(LoadError, match="broken cannot be loaded: OSError: no such model file"):
        await broken.load()
