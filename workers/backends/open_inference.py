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
from workers.backends.open_inference_answers import NamedPost, by_name
from workers.backends.open_inference_calls import Apart, Item, chunks, stacked, together
from workers.backends.open_inference_codec import Tensor
from workers.backends.open_inference_grpc import GrpcWire
from workers.backends.open_inference_model import Plan, Wanted, plan
from workers.backends.open_inference_rest import RestWire
from workers.backends.open_inference_rows import Rows
from workers.backends.open_inference_wire import READY_S, Ask, Place, Wire, awaited, parameters
from workers.backends.remote_faults import Trouble
from workers.backends.remote_keys import Keys, bearer
from workers.backends.remote_options import Options
from workers.backends.remote_wire import USUAL, Limits
from workers.backends.tensors import ClassPost, Post
from workers.errors import BadInput, LoadError
from workers.faults import told

LIMITS = USUAL._replace(answer_bytes=8 * 1024 * 1024)
"""Tensors are larger than texts."""
MOST_ROWS = 1024


class OpenInferenceBackend:
    """`model` of the server at `url` answers for the capability of `card`.

    `inputs`, `outputs` and `batched`: see `workers.backends.open_inference_model.Wanted`; `post` makes
    answers of the outputs (a NamedPost by default). `binary`: raw tensors over REST; None: where the server
    says that it can. `load` waits `ready_s` for the server.
    """

    threads = 4
    """How many batches may be under way at the same time: a slow server holds a thread, not a core."""

    def __init__(
        self,
        card: Card,
        url: str,
        model: str,
        *,
        version: str = "",
        inputs: Mapping[str, Any] | None = None,
        outputs: Sequence[str] = (),
        post: Post | None = None,
        batched: bool = True,
        max_batch: int = MOST_ROWS,
        binary: bool | None = None,
        ready_s: float = READY_S,
        limits: Limits = LIMITS,
        keys: Keys | None = None,
    ) -> None:
        self.card = card
        place = Place(model, version)
        name, keys = card.capability, keys or Keys()
        if url.startswith(("grpc://", "grpcs://")):
            self._wire: Wire = GrpcWire(name, url, place, limits, keys)
        else:
            self._wire = RestWire(name, url, place, limits, keys, binary)
        self._wanted = Wanted(dict(inputs or {}), tuple(outputs), batched, max_batch)
        self._post = post or NamedPost()
        self._ready_s, self._limits = ready_s, limits
        self._plan: Plan | None = None
        self._rows = Rows(())
        self.provider = ""

    async def load(self) -> None:
        self._wire.start()
        try:
            model = await asyncio.to_thread(self._wire.run, awaited(self._wire.look, self._ready_s))
            found = plan(model, self._wanted)
        except LoadError as error:
            self.close()
            raise LoadError(f"{self.card.capability}: {self._wire.host}: {error}") from error
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
        if self._plan is None:
            raise LoadError(f"{self.card.capability} is not loaded; await load() first")
        return self._wire.run(self._all(rows, calls, self._plan))

    def close(self) -> None:
        self._wire.close()

    async def _all(self, rows: Sequence[Row], calls: Sequence[Call], plan: Plan) -> list[Answer]:
        now = time.monotonic()
        answers: list[Answer | None] = [None] * len(rows)
        items: list[Item] = []
        for place, (row, call) in enumerate(zip(rows, calls, strict=True)):
            bounded = Call(call.subtask, min(call.until, now + self._limits.timeout_s))
            try:
                parameters(row.params)
                items.append(Item(place, self._rows.read(row), bounded))
            except BadInput as error:
                answers[place] = Answer(error=told(error, self.card.capability), cost=0.0)
            if call.until <= now and answers[place] is None:
                answers[items.pop().place] = self._late()
        apart = Apart(
            self.card,
            self._wire.host,
            lambda some: self._ask(some, rows, plan),
            repeatable=self.card.max_cost == 0 or self._limits.idempotent,
        )
        groups = chunks(items, plan.most_rows, [kin_of(Row({}, row.params)) for row in rows])
        for found in await asyncio.gather(*(apart.answers(group) for group in groups)):
            for place, answer in found:
                answers[place] = answer
        return [answer for answer in answers if answer is not None]

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
        except (ValueError, TypeError, LookupError) as error:
            text = f"answered outputs that cannot be read as an answer ({type(error).__name__})"
            raise Trouble(text, code="bad_output") from error
        if len(answers) != len(items):
            raise Trouble(f"gave {len(answers)} answers for {len(items)} rows", code="bad_output")
        return answers

    def _late(self) -> Answer:
        late = Trouble("was not asked: the deadline had passed", code="deadline_exceeded", free=True)
        return late.answer(self.card.capability, self._wire.host)


def build(card: Card, options: Mapping[str, Any]) -> OpenInferenceBackend:
    """Options: `url` and `model`; as wanted `version`, `inputs`, `outputs` (a list of tensors, or tensor to
    name in the answer), `scalars`, `confidence`, or for classifiers `labels`, `softmax`, `scores` and
    `source`; `batched`, `max_batch`, `binary`, `ready_s`, `key_env` or `key_file`, and those of
    `workers.backends.remote_options`.

    Raises:
        LoadError: others, or of another type.
    """
    read = Options(card.capability, "open_inference", options)
    url, model = read.text("url"), read.text("model")
    if url is None or model is None:
        raise LoadError(f"{card.capability}: an open_inference backend needs the options url and model")
    names, post = _post(card, read, options)
    built = OpenInferenceBackend(
        card,
        url,
        model,
        version=read.text("version") or "",
        inputs=read.mapping("inputs"),
        outputs=names,
        post=post,
        batched=read.flag("batched", usual=True),
        max_batch=read.count("max_batch", MOST_ROWS, 1, MOST_ROWS),
        binary=read.flag("binary") if options.get("binary") is not None else None,
        ready_s=read.number("ready_s", READY_S, 0.0, 600.0),
        limits=read.limits(LIMITS),
        keys=bearer(read.text("key_env") or "", read.text("key_file") or ""),
    )
    read.end()
    return built


def _post(card: Card, read: Options, options: Mapping[str, Any]) -> tuple[tuple[str, ...], Post]:
    """The outputs that are asked for, and what makes answers of them."""
    classifier = [name for name in ("labels", "softmax", "source") if options.get(name) is not None]
    labels, source = read.texts("labels"), read.text("source")
    softmax, scores = read.flag("softmax"), read.flag("scores", usual=True)
    plain = [name for name in ("outputs", "scalars", "confidence") if options.get(name) is not None]
    scalars, confidence = read.flag("scalars"), read.text("confidence")
    given = options.get("outputs")
    names = (
        read.texts_by_name("outputs") if isinstance(given, Mapping) else dict.fromkeys(read.texts("outputs"))
    )
    if classifier:
        if plain:
            raise LoadError(f"{card.capability}: {plain[0]} does not go with {classifier[0]}")
        return (source,) if source else (), ClassPost(
            labels or None, softmax=softmax, scores=scores, source=source
        )
    renamed = {name: theirs or name for name, theirs in names.items()}
    wanted = [*names, *([confidence] if confidence and names and confidence not in names else [])]
    return tuple(wanted), NamedPost(renamed, scalars=scalars, confidence=confidence)
