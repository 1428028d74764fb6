"""Plain Python functions as capabilities.

Three forms, sync or async:

- `f(inputs, params) -> output | (output, confidence) | Answer`
- `f(text: str, limit: int = 3) -> ...`: arguments by name from inputs, then params; checked against the
  annotations, which also make the card's input schema
- with `batch=True`: `f([(inputs, params), ...]) -> [...]`, one answer a row; a row's answer may be an
  exception

A class is taken as its objects are called: one is made when the worker loads, which is the place to read a
model. The return annotation makes the card's output schema, and outputs are checked against it; the
docstring's first line is the card's description, the whole of it stands in the input schema.

ValueError is `bad_input`, CapabilityError what it says, anything else `backend_error`. Sync functions run in
a thread, so they must be thread-safe only where the worker is told to use several threads for a capability.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set, Sized
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from schemas.cards import Card
from schemas.errors import UnknownTopic
from schemas.messages import Side
from schemas.topics import capability_topic
from workers.backends import Answer, Call, Row, kin_of
from workers.backends.arguments import Arguments
from workers.backends.awaiting import unkept, within
from workers.backends.called import is_async
from workers.backends.remote_loop import OwnLoop
from workers.backends.returns import Returns
from workers.errors import BadOutput, LoadError, where
from workers.faults import told

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)
Load = Callable[[], object]
MARK = "__edgeway_cards__"
"""Attribute under which `capability` notes a function's cards and forms."""


MOST_TEXT = 4000
"""Characters of a docstring that travel with each heartbeat."""


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

    `max_cost` is a call's upper bound (None: `cost`, where tokens cost nothing). `load` is called once in a
    thread before the first call, and raises what keeps it from being offered. May be given once a side.

    Raises:
        LoadError: a name that makes no topic, or limits that make no sense.
    """
    side, rest = _named(name)
    limits = (max_wait_ms, cost, cost_per_token, qps or 0.0, max_cost or 0.0)
    if not (max_batch >= 1 and all(0.0 <= limit < math.inf for limit in limits)):
        raise LoadError(f"capability {name!r}: max_batch is at least 1; times, costs and qps at least 0")

    def mark(function: F) -> F:
        card = Card(
            capability=rest,
            side=side,
            version=version,
            model=model or str(getattr(function, "__name__", rest)),
            input_schema=_documented(input_schema, function, batch),
            output_schema=output_schema or Returns.of(function, batch=batch).schema,
            max_qps=qps,
            cost_per_call=cost,
            cost_per_token=cost_per_token,
            max_cost=cost if max_cost is None and not cost_per_token else max_cost,
            calibrated=calibrated,
            max_batch=max_batch,
            max_wait_ms=max_wait_ms,
            description=description or (inspect.getdoc(function) or "").partition("\n")[0],
            cacheable=cacheable,
            licence=licence,
            source=source,
            quality=quality,
        )
        setattr(function, MARK, (*_marks(function), Marked(card, batch, load)))
        return function

    return mark


def _documented(given: dict[str, Any] | None, function: Function, batch: bool) -> dict[str, Any]:
    """The schema, the function's own where none is `given`, with its whole docstring as far as that says more
    than the card does.
    """
    taken = Arguments.rows_schema(function) if batch else Arguments.schema_of(function)
    schema = given or taken
    text = inspect.getdoc(function) or ""
    if "description" in schema or "\n" not in text.strip():
        return schema
    return {**schema, "description": text[:MOST_TEXT]}


def _named(name: Any) -> tuple[Side, str]:
    """The side and the capability of `SIDE/NAME`."""
    if not isinstance(name, str):
        marked = getattr(name, "__name__", name)
        raise LoadError(f'@capability above {marked} has no name; write @capability("local/NAME")')
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
        FunctionBackend(card, function, batch=batch, load=load) for card, batch, load in _marks(function)
    )


def _marks(function: Function) -> tuple[Marked, ...]:
    # Its own alone: the objects of a marked class have none, nor its subclasses.
    found: tuple[Marked, ...] = getattr(function, "__dict__", {}).get(MARK, ())
    return found


class FunctionBackend:
    """A function as a backend, or a class: `load` makes the object that is called then, `close` closes it.

    An async one runs on a loop of its own, its rows side by side, each until its deadline: one that does not
    return by then is cancelled and answered `deadline_exceeded`.
    """

    def __init__(
        self, card: Card, function: Function, *, batch: bool = False, load: Load | None = None
    ) -> None:
        self.card = card
        self._load = load
        self._loaded = False
        self._function = function
        self._made: Any = None
        self._batch = batch
        self._arguments = None if batch else Arguments.of(function)
        self._returns = Returns.of(function, batch=batch)
        self._async = is_async(function)
        self.one_by_one = not batch and not self._async
        if self._async:
            # Only what can be ended may run until its calls' deadlines; a plain function that runs hangs.
            self.infer_calls = self._infer_calls
        self._loop = OwnLoop(f"async {card.capability}")

    async def load(self) -> None:
        if not self._loaded:
            try:
                await asyncio.to_thread(self._make)
            except LoadError:
                raise
            except (Exception, SystemExit) as error:
                kind, place = type(error).__name__, where(error)
                text = f"{self.card.capability} cannot be loaded: {kind}: {error} ({place})"
                raise LoadError(text) from error
        self._loaded = True
        if self._async:
            self._loop.start()

    def kin(self, row: Row) -> Hashable:
        return kin_of(row)

    def infer(self, rows: Sequence[Row]) -> list[Answer]:
        return self._infer(rows, [None] * len(rows))

    def _infer_calls(self, rows: Sequence[Row], calls: Sequence[Call]) -> list[Answer]:
        return self._infer(rows, [call.until for call in calls])

    def close(self) -> None:
        made, self._made, self._loaded = self._made, None, False
        self._loop.close()
        if callable(ending := getattr(made, "close", None)):
            ending()

    def _make(self) -> None:
        if self._load is not None:
            self._load()
        if inspect.isclass(self._function):
            self._made = self._function()

    @property
    def _callable(self) -> Function:
        if not inspect.isclass(self._function):
            return self._function
        if self._made is None:
            raise LoadError(f"{self.card.capability} is not loaded; await load() first")
        made: Function = self._made
        return made

    def _infer(self, rows: Sequence[Row], untils: Sequence[float | None]) -> list[Answer]:
        if self._batch:
            values = self._callable(list(rows))
            if self._async:
                values = unkept(self._loop.run(within(values, _latest(untils))))
            return self._answers(_listed(values, len(rows)), len(rows))
        if self._async:
            return self._answers(self._loop.run(self._gather(rows, untils)), len(rows))
        return [self._one(row) for row in rows]

    def _one(self, row: Row) -> Answer:
        try:
            return self._returns.answer(self._call(row))
        except Exception as error:  # noqa: BLE001  # a user's function may raise anything; the row is told so
            return Answer(error=told(error, self.card.capability))

    def _call(self, row: Row) -> Any:
        if self._arguments is None:
            return self._callable(row.inputs, row.params)
        return self._callable(**self._arguments.read(row))

    async def _acall(self, row: Row, until: float | None) -> Any:
        # In a coroutine: bad inputs then fail their row alone.
        return await within(self._call(row), until)

    async def _gather(self, rows: Sequence[Row], untils: Sequence[float | None]) -> list[Any]:
        calls = (self._acall(row, until) for row, until in zip(rows, untils, strict=True))
        return await asyncio.gather(*calls, return_exceptions=True)

    def _answers(self, values: list[Any], rows: int) -> list[Answer]:
        if len(values) != rows:
            raise BadOutput(f"answered {len(values)} of {rows} rows")
        return [self._answer(value) for value in values]

    def _answer(self, value: Any) -> Answer:
        try:
            return self._returns.answer(unkept(value))
        except Exception as error:  # noqa: BLE001  # as in _one
            return Answer(error=told(error, self.card.capability))


def _listed(values: Any, rows: int) -> list[Any]:
    """What a batch function gave, as a list: of a generator no more than one answer too many.

    Raises:
        BadOutput: it is no list of answers. A text or a dict of as many as there are rows would be taken for
        one, and a set gives each row the answer of another.
    """
    if isinstance(values, str | bytes | bytearray | Mapping | Set) or not isinstance(values, Iterable):
        raise BadOutput(f"gave a {type(values).__name__}; a batch function gives a list, one answer a row")
    return list(values if isinstance(values, Sized) else islice(values, rows + 1))


def _latest(untils: Sequence[float | None]) -> float | None:
    """Until when anybody waits for a batch."""
    known = [until for until in untils if until is not None]
    return max(known) if len(known) == len(untils) and known else None


def build(card: Card, options: Mapping[str, Any]) -> FunctionBackend:
    """Options: `function` (a callable) and `batch`."""
    function = options.get("function")
    if not callable(function):
        raise LoadError(f"{card.capability}: a function backend takes `function`, something callable")
    return FunctionBackend(card, function, batch=bool(options.get("batch", False)))
