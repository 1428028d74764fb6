"""ONNX models on the ONNX Runtime (CPU; CUDA where a provider is named)."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from schemas.cards import Card
from workers.backends import Answer, Row, kin_of
from workers.backends.tensors import ClassPost, Feed, Post, Pre, TensorPost, TensorPre
from workers.errors import BadInput, BadRows, LoadError, failure_of

_DTYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(uint8)": "uint8",
    "tensor(int8)": "int8",
}


class OnnxBackend:
    """One ONNX model as a capability.

    Without `pre` every model input is read from the subtask's input of the same name, or from the name that
    `sources` gives for it (`{"input": "pixels"}`). Without `post` every model output is a list of numbers.
    `warm_rows` are run at load; without them, and with the ready-made `pre`, zeros of the model's shape are.
    """

    def __init__(
        self,
        card: Card,
        path: str | Path,
        *,
        pre: Pre | None = None,
        post: Post | None = None,
        sources: Mapping[str, str] | None = None,
        intra_threads: int = 1,
        inter_threads: int = 1,
        providers: Sequence[str] = ("CPUExecutionProvider",),
        warm_rows: Sequence[Row] = (),
    ) -> None:
        self.card = card
        self._path = Path(path)
        self._pre, self._post = pre, post or TensorPost()
        self._sources = dict(sources or {})
        self._threads = (intra_threads, inter_threads)
        self._providers = list(providers)
        self._warm_rows = tuple(warm_rows)
        self._session: Any = None
        self._names: list[str] = []
        self._ready_made: TensorPre | None = None

    async def load(self) -> None:
        await asyncio.to_thread(self._load)

    def kin(self, row: Row) -> Hashable:
        return self._ready_made.kin(row) if self._ready_made else kin_of(row)

    def infer(self, rows: Sequence[Row]) -> list[Answer]:
        if self._pre is None or self._session is None:
            raise LoadError(f"{self.card.capability} is not loaded; await load() first")
        try:
            feeds = self._pre(rows)
        except BadRows as refused:
            return self._without(rows, refused)
        outputs = self._session.run(self._names, feeds)
        return self._post(dict(zip(self._names, outputs, strict=True)), rows)

    def close(self) -> None:
        self._session = None

    def _without(self, rows: Sequence[Row], refused: BadRows) -> list[Answer]:
        """The sound rows' answers, and the refusals at their places."""
        faults = {i: BadInput(told) for i, told in refused.faults.items() if 0 <= i < len(rows)}
        if not faults:
            raise refused
        sound = [row for i, row in enumerate(rows) if i not in faults]
        answers = iter(self.infer(sound) if sound else ())
        name = self.card.capability
        return [
            Answer(error=failure_of(faults[i], name)) if i in faults else next(answers)
            for i in range(len(rows))
        ]

    def _load(self) -> None:
        # Imported here: the router and the aggregator import workers' cards but run no model.
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self._threads
        options.log_severity_level = 3
        try:
            self._session = ort.InferenceSession(str(self._path), options, providers=self._providers)
        except Exception as error:
            raise LoadError(f"{self.card.capability}: cannot load {self._path.name}: {error}") from error
        self._names = [output.name for output in self._session.get_outputs()]
        if self._pre is None:
            self._pre = self._ready_made = TensorPre(
                [self._feed(node) for node in self._session.get_inputs()]
            )
        self._warm_up()

    def _feed(self, node: Any) -> Feed:
        dtype = _DTYPES.get(node.type)
        if dtype is None:
            raise LoadError(
                f"{self.card.capability}: input {node.name!r} is {node.type}; give a `pre` of your own"
            )
        shape = tuple(size if isinstance(size, int) and size > 0 else None for size in node.shape[1:])
        return Feed(node.name, self._sources.get(node.name, node.name), shape, dtype)

    def _warm_up(self) -> None:
        nodes = self._session.get_inputs()
        batch = nodes[0].shape[0] if nodes and nodes[0].shape else None
        if isinstance(batch, int) and batch != self.card.max_batch:
            raise LoadError(
                f"{self.card.capability}: {self._path.name} takes exactly {batch} rows a run, the card has "
                f"max_batch {self.card.max_batch}; set that to {batch} or export with a free batch axis"
            )
        if self._warm_rows:
            self.infer(self._warm_rows)
        elif self._ready_made and all(isinstance(size, int) for node in nodes for size in node.shape[1:]):
            for rows in sorted({1, self.card.max_batch}):
                feeds = {node.name: np.zeros((rows, *node.shape[1:]), _DTYPES[node.type]) for node in nodes}
                self._session.run(self._names, feeds)


def build(card: Card, options: Mapping[str, Any]) -> OnnxBackend:
    """Options: `path`, and as wanted `sources`, `intra_threads`, `inter_threads`, `providers`, and for
    classifiers `labels`, `softmax`, `scores`."""
    known = {"path", "sources", "intra_threads", "inter_threads", "providers", "labels", "softmax", "scores"}
    if unknown := sorted(set(options) - known) or "path" not in options:
        raise LoadError(
            f"{card.capability}: an onnx backend takes path and {sorted(known - {'path'})}; got {unknown}"
        )
    shape = {key: options[key] for key in ("labels", "softmax", "scores") if key in options}
    rest = {key: value for key, value in options.items() if key not in shape}
    return OnnxBackend(card, post=ClassPost(**shape) if shape else None, **rest)
