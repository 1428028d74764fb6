"""A model on a server of the Open Inference Protocol, version 2: Triton, KServe, MLServer, and others.

Over REST (`http://`, `https://`) or gRPC (`grpc://`, `grpcs://`). Rows that stack are asked in one call, up
to `max_batch`. docs/backends.md has the options.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from schemas.cards import Card
from workers.backends import Answer, Call, Row, kin_of
from workers.backends.open_inference_answers import by_name
from workers.backends.open_inference_calls import Apart, Item, chunks, stacked, together
from workers.backends.open_inference_codec import Tensor
from workers.backends.open_inference_model import Plan, plan
from workers.backends.open_inference_rows import Rows
from workers.backends.open_inference_settings import settings_of
from workers.backends.open_inference_wire import Ask, awaited, parameters
from workers.backends.remote_cards import card_and_options
from workers.backends.remote_faults import Trouble
from workers.backends.tensors import Post
from workers.errors import BadInput, LoadError
from workers.faults import told

MAX_BATCH = 32
"""How many rows share a call, where the card says nothing."""


class OpenInferenceBackend:
    """`OpenInferenceBackend("cloud/vision/digit", url="grpc://HOST:8001", model="digits")`.

    `capability` is SIDE/NAME or a whole card; the other options are the backend's, and, beside a name, fields
    of the card. `post` makes answers of the outputs where the options for that are not enough.

    Raises:
        LoadError: options that make no sense.
    """

    threads = 4
    """How many batches may be under way at the same time: a slow server holds a thread, not a core."""

    def __init__(self, capability: str | Card, *, post: Post | None = None, **options: Any) -> None:
        self.card, given = card_and_options(capability, options, "open_inference", MAX_BATCH)
        settings = settings_of(self.card, given)
        self._wire, self._wanted, self._limits = settings.wire, settings.wanted, settings.limits
        self._post, self._ready_s = post or settings.post, settings.ready_s
        self._plan: Plan | None = None
        self._rows = Rows(())
        self.provider = ""

    async def load(self) -> None:
        if self._plan is not None:
            return
        self._wire.start()
        try:
            model = await asyncio.to_thread(self._wire.run, awaited(self._wire.look, self._ready_s))
            found = plan(model, self._wanted)
        except LoadError as error:
            self.close()
            raise LoadError(f"{self.card.capability}: {self._wire.host}: {error}") from error
        except BaseException:
            self.close()
            raise
        self._rows, self._plan = Rows(found.ports), found
        self.provider = model.server

    def gpu(self) -> float | None:
        """Nobody here knows."""
        return None

    def kin(self, row: Row) -> Hashable:
        return self._rows.kin(row)

    def infer(self, rows: Sequence[Row]) -> list[Answer]:
        until = time.monotonic() + self._limits.timeout_s
        return self.infer_calls(rows, [Call("", until)] * len(rows))

    def infer_calls(self, rows: Sequence[Row], calls: Sequence[Call]) -> list[Answer]:
        plan = self._plan
        if plan is None:
            raise LoadError(f"{self.card.capability} is not loaded; await load() first")
        read = [
            self._read(place, row, call) for place, (row, call) in enumerate(zip(rows, calls, strict=True))
        ]
        items = [item for item in read if isinstance(item, Item)]
        found = self._wire.run(self._asked(items, rows, plan)) if items else {}
        return [found[item.place] if isinstance(item, Item) else item for item in read]

    def close(self) -> None:
        self._plan = None
        self._wire.close()

    def _read(self, place: int, row: Row, call: Call) -> Item | Answer:
        """What is to be asked for a row, or why it is not."""
        now = time.monotonic()
        if call.until <= now:
            late = Trouble("was not asked: the deadline had passed", code="deadline_exceeded", free=True)
            return late.answer(self.card.capability, self._wire.host)
        try:
            parameters(row.params)
            arrays = self._rows.read(row)
        except BadInput as error:
            return Answer(error=told(error, self.card.capability), cost=0.0)
        return Item(place, arrays, call._replace(until=min(call.until, now + self._limits.timeout_s)))

    async def _asked(self, items: Sequence[Item], rows: Sequence[Row], plan: Plan) -> dict[int, Answer]:
        """The answer of each place."""
        apart = Apart(
            self.card,
            self._wire.host,
            lambda some: self._ask(some, rows, plan),
            repeatable=self.card.max_cost == 0 or self._limits.idempotent,
        )
        groups = chunks(items, plan.most_rows, [kin_of(Row({}, row.params)) for row in rows])
        found = await asyncio.gather(*(apart.answers(group) for group in groups))
        return dict(pair for pairs in found for pair in pairs)

    async def _ask(self, items: Sequence[Item], rows: Sequence[Row], plan: Plan) -> list[Answer]:
        """One call. Raises Trouble or BadInput."""
        batched = self._wanted.batched
        arrays = stacked(items, batched=batched)
        call = together(items)
        ask = Ask(
            tuple(
                Tensor(port.name, port.datatype, array)
                for port, array in zip(plan.ports, arrays, strict=True)
            ),
            plan.outputs,
            parameters(rows[items[0].place].params),
            call.subtask,
        )
        tensors = await self._wire.infer(self.card, ask, call)
        outputs = by_name(tensors, plan.outputs, len(items), batched=batched)
        try:
            answers = self._post(outputs, [rows[item.place] for item in items])
        except Exception as error:
            text = f"answered outputs that cannot be read as an answer ({type(error).__name__})"
            raise Trouble(text, code="bad_output") from error
        if len(answers) != len(items):
            raise Trouble(f"gave {len(answers)} answers for {len(items)} rows", code="bad_output")
        return answers


def build(card: Card, options: Mapping[str, Any]) -> OpenInferenceBackend:
    """Options: see docs/backends.md; `model` is by default the card's.

    Raises:
        LoadError: options that make no sense.
    """
    return OpenInferenceBackend(card, **options)
