"""Work over many inputs with a bounded number read ahead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable, Sized
from typing import Any, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


def total_of(inputs: object) -> int | None:
    """How many inputs there are, where they can tell."""
    return len(inputs) if isinstance(inputs, Sized) else None


class Windowed(Generic[T, R]):
    """The results of `work` over `inputs`, in their order or as they come.

    Never more than `concurrency` inputs are read and not yet given out as results. An error of `inputs` is
    raised once the results of those read before are given out. Not to be iterated twice.
    """

    def __init__(
        self,
        inputs: Iterable[T] | AsyncIterable[T],
        work: Callable[[T], Coroutine[Any, Any, R]],
        concurrency: int,
        ordered: bool,
    ) -> None:
        if concurrency < 1:
            raise ValueError(f"concurrency {concurrency}: give 1 or more")
        self._inputs = aiter(inputs) if isinstance(inputs, AsyncIterable) else iter(inputs)
        self._work = work
        self._concurrency = concurrency
        self._ordered = ordered
        self._news = asyncio.Event()
        self._under_way: dict[asyncio.Task[R], None] = {}
        self._finished: list[asyncio.Task[R]] = []
        self._reading: asyncio.Task[T] | None = None
        self._exhausted = False
        self._error: Exception | None = None

    async def results(self) -> AsyncGenerator[R, None]:
        """Closing it, or cancelling what iterates it, ends all waits of the work and sees them end."""
        try:
            while True:
                self._news.clear()
                self._read()
                ready = self._ready()
                if ready is not None:
                    del self._under_way[ready]
                    yield ready.result()
                elif self._exhausted and not self._under_way:
                    break
                else:
                    await self._news.wait()
            if self._error is not None:
                raise self._error
        finally:
            await self._end()

    def _ready(self) -> asyncio.Task[R] | None:
        if self._ordered:
            first = next(iter(self._under_way), None)
            return first if first is not None and first.done() else None
        return self._finished.pop(0) if self._finished else None

    def _read(self) -> None:
        while not self._exhausted and len(self._under_way) < self._concurrency:
            try:
                if isinstance(self._inputs, AsyncIterator):
                    if not self._read_async(self._inputs):
                        return
                else:
                    self._begin(next(self._inputs))
            except (StopIteration, StopAsyncIteration):
                self._exhausted = True
            except Exception as exc:  # noqa: BLE001 - raised by `results` once the others are given out
                self._exhausted, self._error = True, exc

    def _read_async(self, inputs: AsyncIterator[T]) -> bool:
        """Begin the input that was read, or begin to read one; whether there was one."""
        reading = self._reading
        if reading is None:
            reading = self._reading = asyncio.ensure_future(_next(inputs))
            reading.add_done_callback(lambda _task: self._news.set())
        if not reading.done():
            return False
        self._reading = None
        if reading.cancelled():
            raise ValueError("the inputs were cancelled")
        self._begin(reading.result())
        return True

    def _begin(self, item: T) -> None:
        task = asyncio.create_task(self._work(item))
        self._under_way[task] = None
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[R]) -> None:
        if not self._ordered:
            self._finished.append(task)
        self._news.set()

    async def _end(self) -> None:
        tasks: list[asyncio.Task[Any]] = [*self._under_way]
        if self._reading is not None:
            tasks.append(self._reading)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled():
                task.exception()


async def _next(inputs: AsyncIterator[T]) -> T:
    return await anext(inputs)
