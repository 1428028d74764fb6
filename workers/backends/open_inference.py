"""A model on a server of the Open Inference Protocol, version 2: Triton, KServe, MLServer, and others.

Over REST (`http://`, `https://`) or gRPC (`grpc://`, `grpcs://`). Rows that stack are asked in one call, up
to `max_batch`. docs/backends.md has the options.
"""

from __future__ import annotations

import asyncio
import logging
import threading
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
from workers.backends.open_inference_wire import LEAST_LOOK_S, Ask, awaited, parameters
from workers.backends.remote_cards import card_and_options
from workers.backends.remote_faults import Trouble
from workers.backends.tensors import Post
from workers.errors import Away, BadInput, BadOutput, LoadError, WorkerError
from workers.faults import FAULTS, told

log = logging.getLogger(__name__)

MAX_BATCH = 32
"""How many rows share a call, where the card says nothing."""
AGAIN_S = 2.0
"""Between looks for a server that was away at `load`."""
LOOK_S = 10.0
"""Such a look takes so long at most."""


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
        self._over: threading.Event | None = None
        self._turn = threading.Lock()
        self._away = ""
        self.provider = ""

    @property
    def waits_for(self) -> str:
        """The server and what is the matter with it, while it was not there since `load`."""
        return f"{self._wire.host}: {self._away}" if self._away else ""

    async def load(self) -> None:
        """A server that is away is waited for beyond this; the rows are refused until then.

        Raises:
            LoadError: a model, key or option that is not as it must be.
        """
        if self._over is not None:
            return
        self._wire.start()
        over = self._over = threading.Event()
        try:
            await asyncio.to_thread(self._look, over, self._ready_s)
        except Away as error:
            self._away = str(error)
            log.warning(
                "%s waits for %s; its rows are refused until then", self.card.capability, self.waits_for
            )
            threading.Thread(
                target=self._wait, args=(over,), name=f"{self.card.capability} waits", daemon=True
            ).start()
        except LoadError as error:
            self.close()
            raise LoadError(f"{self.card.capability}: {self._wire.host}: {error}") from error
        except BaseException:
            self.close()
            raise

    def _look(self, over: threading.Event, ready_s: float, least_s: float = LEAST_LOOK_S) -> None:
        """Look at the model, and be ready. Raises LoadError. Blocks."""
        model = self._wire.run(awaited(self._wire.look, ready_s, least_s))
        found = plan(model, self._wanted)
        with self._turn:
            if over.is_set():
                return
            self._rows, self._plan = Rows(found.ports), found
            self._away, self.provider = "", model.server

    def _wait(self, over: threading.Event) -> None:
        """In a thread: look again and again, until the backend is ready or closed."""
        while not over.wait(AGAIN_S):
            try:
                self._look(over, 0.0, LOOK_S)
            except WorkerError as error:
                if over.is_set():
                    return
                if self._away != str(error):
                    self._away = str(error)
                    log.warning("%s still waits for %s", self.card.capability, self.waits_for)
            else:
                if not over.is_set():
                    log.info("%s: %s is there now", self.card.capability, self._wire.host)
                return

    def gpu(self) -> float | None:
        """Nobody here knows."""
        return None

    def reachable(self) -> bool | None:
        return False if self._away else self._wire.reachable

    def kin(self, row: Row) -> Hashable:
        return self._rows.kin(row)

    def infer(self, rows: Sequence[Row]) -> list[Answer]:
        until = time.monotonic() + self._limits.timeout_s
        return self.infer_calls(rows, [Call("", until)] * len(rows))

    def infer_calls(self, rows: Sequence[Row], calls: Sequence[Call]) -> list[Answer]:
        plan = self._plan
        if plan is None:
            return self._refused(len(rows))
        read = [
            self._read(place, row, call) for place, (row, call) in enumerate(zip(rows, calls, strict=True))
        ]
        items = [item for item in read if isinstance(item, Item)]
        found = self._wire.run(self._asked(items, rows, plan)) if items else {}
        return [found[item.place] if isinstance(item, Item) else item for item in read]

    def close(self) -> None:
        over, self._over = self._over, None
        with self._turn:
            if over is not None:
                over.set()
            self._plan, self._away = None, ""
        self._wire.close()

    def _refused(self, count: int) -> list[Answer]:
        """The answers to rows before the server was there. Raises LoadError: not loaded."""
        why = self._away
        if not why:
            raise LoadError(f"{self.card.capability} is not loaded; await load() first")
        trouble = Trouble(f"was not asked: {why}; it is looked for again", free=True)
        answer = trouble.answer(self.card.capability, self._wire.host)
        assert answer.error is not None
        FAULTS.elsewhere(answer.error)
        return [answer] * count

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
        except BadOutput as error:
            raise Trouble(f"answered otherwise than its options say: {error}", code="bad_output") from error
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
