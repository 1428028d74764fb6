"""Plain Python functions as capabilities.

Three forms, sync or async:

- `f(inputs, params) -> output | (output, confidence) | Answer`
- `f(text: str, limit: int = 3) -> ...`: arguments by name from inputs, then params; checked against the
  annotations, which also make the card's input schema
- with `batch=True`: `f([(inputs, params), ...]) -> [...]`, one answer a row; a row's answer may be an
  exception

ValueError is `bad_input`, anything else `backend_error`. Sync functions run in a thread, so they must be
thread-safe only where the worker is told to use several threads for a capability.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from schemas.cards import Card
from schemas.errors import Malformed, UnknownTopic
from schemas.messages import Side
from schemas.topics import capability_topic
from schemas.values import all_finite
from workers.backends import Answer, Row, kin_of
from workers.backends.arguments import Arguments
from workers.errors import BadOutput, LoadError
from workers.faults import told

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)
Load = Callable[[], object]
MARK = "__edgeway_cards__"
"""Attribute under which `capability` notes a function's cards and forms."""


class Marked(NamedTuple):
    """What `capability` notes."""

    card: Card
    batch: bool
    load: Load | None


def capability(
    name: str,
    *,
    cost: float = 0.0,
    qps: float | None = None,
    version: str = "1",
    max_batch: int = 32,
    max_wait_ms: float = 0.0,
    calibrated: bool = False,
    batch: bool = False,
    model: str | None = None,
    cost_per_token: float = 0.0,
    max_cost: float | None = None,
    input_schema: dict[str, Any] | None = None,
    output_schema: dict[str, Any] | None = None,
    description: str | None = None,
    cacheable: bool = False,
    licence: str = "",
    source: str = "",
    quality: str = "",
    load: Load | None = None,
) -> Callable[[F], F]:
    """Offer a function as the capability `local/text/tokenize` or `cloud/...`. The function stays as it is.

    `cost` a call, in the prices' currency; `max_cost` a call's upper bound (None: `cost`, where tokens cost
    nothing). `cacheable`: equal inputs give equal outputs. `load` is called once in a thread before the first
    call: it reads models and warms up, and raises what keeps the capability from being offered. May be given
    several times, once for each side.

    Raises:
        LoadError: a name that makes no topic, or limits that make no sense.
    """
    given: Any = name
    if not isinstance(given, str):
        marked = getattr(given, "__name__", given)
        raise LoadError(f'@capability above {marked} has no name; write @capability("local/NAME")')
    side, rest = _named(name)
    if max_batch < 1 or max_wait_ms < 0 or cost < 0 or cost_per_token < 0:
        raise LoadError(
            f"capability {name!r}: max_batch is at least 1; max_wait_ms, cost and cost_per_token at least 0"
        )
    bound = cost if max_cost is None and not cost_per_token else max_cost

    def mark(function: F) -> F:
        arguments = None if batch else Arguments.of(function)
        card = Card(
            capability=rest,
            side=side,
            version=version,
            model=model or str(getattr(function, "__name__", rest)),
            input_schema=input_schema or (arguments.schema if arguments else {}),
            output_schema=output_schema or {},
            max_qps=qps,
            cost_per_call=cost,
            cost_per_token=cost_per_token,
            max_cost=bound,
            calibrated=calibrated,
            max_batch=max_batch,
            max_wait_ms=max_wait_ms,
            description=description or (inspect.getdoc(function) or "").partition("\n")[0],
            cacheable=cacheable,
            licence=licence,
            source=source,
            quality=quality,
        )
        setattr(function, MARK, (*getattr(function, MARK, ()), Marked(card, batch, load)))
        return function

    return mark


def _named(name: str) -> tuple[Side, str]:
    """The side and the capability of `SIDE/NAME`."""
    side, _, rest = name.partition("/")
    if side not in ("local", "cloud"):
        raise LoadError(
            f"capability {name!r}: give SIDE/NAME, such as local/text/tokenize or cloud/nlp/summarize"
        )
    known: Side = "local" if side == "local" else "cloud"
    try:
        capability_topic(known, rest)
    except UnknownTopic as error:
        raise LoadError(f"capability {name!r}: {error}") from error
    return known, rest


def backends_of(function: Function) -> tuple[FunctionBackend, ...]:
    """The backends of a function that was marked by `capability`; none of another."""
    return tuple(
        FunctionBackend(card, function, batch=batch, load=load)
        for card, batch, load in getattr(function, MARK, ())
    )


class FunctionBackend:
    """A function as a backend. An async one runs on a loop of its own, its rows side by side."""

    def __init__(
        self, card: Card, function: Function, *, batch: bool = False, load: Load | None = None
    ) -> None:
        self.card = card
        self._load = load
        self._function = function
        self._batch = batch
        self._arguments = None if batch else Arguments.of(function)
        self._async = inspect.iscoroutinefunction(function)
        self.one_by_one = not batch and not self._async
        self._loop: asyncio.AbstractEventLoop | None = None

    async def load(self) -> None:
        if self._load is not None:
            await asyncio.to_thread(self._load)
        if self._async and self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(
                target=_serve, args=(self._loop,), name=f"async {self.card.capability}", daemon=True
            ).start()

    def kin(self, row: Row) -> Hashable:
        return kin_of(row)

    def infer(self, rows: Sequence[Row]) -> list[Answer]:
        if self._batch:
            values = self._function(list(rows))
            if self._async:
                values = _unkept(self._on_loop(_kept(values)))
            return self._answers(list(values), len(rows))
        if self._async:
            return self._answers(self._on_loop(self._gather(rows)), len(rows))
        return [self._one(row) for row in rows]

    def close(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None

    def _one(self, row: Row) -> Answer:
        try:
            return answer_of(self._call(row))
        except Exception as error:  # noqa: BLE001  # a user's function may raise anything; the row is told so
            return Answer(error=told(error, self.card.capability))

    def _call(self, row: Row) -> Any:
        if self._arguments is None:
            return self._function(row.inputs, row.params)
        return self._function(**self._arguments.read(row))

    async def _acall(self, row: Row) -> Any:
        return await _kept(self._call(row))

    async def _gather(self, rows: Sequence[Row]) -> list[Any]:
        return await asyncio.gather(*(self._acall(row) for row in rows), return_exceptions=True)

    def _answers(self, values: list[Any], rows: int) -> list[Answer]:
        if len(values) != rows:
            raise BadOutput(f"answered {len(values)} of {rows} rows")
        return [self._answer(value) for value in values]

    def _answer(self, value: Any) -> Answer:
        try:
            return answer_of(_unkept(value))
        except Exception as error:  # noqa: BLE001  # as in _one
            return Answer(error=told(error, self.card.capability))

    def _on_loop(self, work: Coroutine[Any, Any, Any]) -> Any:
        if self._loop is None:
            work.close()
            raise LoadError(f"{self.card.capability} is not loaded; await load() first")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def answer_of(value: Any) -> Answer:
    """A function's return value as an Answer: a tuple of two whose second is a number or None is (output,
    confidence).

    Raises:
        BadOutput: a confidence outside [0, 1], an output with NaN or an infinity, or one that holds itself.
    """
    answer = value if isinstance(value, Answer) else Answer(*_split(value))
    sure: Any = answer.confidence
    if sure is not None and not (isinstance(sure, int | float) and 0.0 <= sure <= 1.0):
        raise BadOutput("the confidence is not within 0 and 1")
    # msgpack carries NaN, so it would go unseen up to the caller who asked in JSON.
    try:
        finite = all_finite(answer.output)
    except Malformed as error:
        raise BadOutput(f"the output cannot be published: {error}") from error
    if not finite:
        raise BadOutput("the output holds NaN or an infinity")
    return answer


async def _kept(work: Coroutine[Any, Any, Any]) -> Any:
    """What `work` returns, or the SystemExit and the like that it raises."""
    # Raised in a task these end the loop's thread, and whoever waits for the answer waits for ever.
    try:
        return await work
    except (SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError) as error:
        return error


def _unkept(value: Any) -> Any:
    if isinstance(value, BaseException):
        raise value
    return value


def _split(value: Any) -> tuple[Any, float | None]:
    if type(value) is not tuple or len(value) != 2:
        return value, None
    output, confidence = value
    if confidence is None:
        return output, None
    if isinstance(confidence, bool) or not hasattr(confidence, "__float__"):
        return value, None
    return output, float(confidence)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


def build(card: Card, options: Mapping[str, Any]) -> FunctionBackend:
    """Options: `function` (a callable) and `batch`."""
    function = options.get("function")
    if not callable(function):
        raise LoadError(f"{card.capability}: a function backend takes `function`, something callable")
    return FunctionBackend(card, function, batch=bool(options.get("batch", False)))
